package operation

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
)

// referenced is an operation as a table of docs/protocol has it.
type referenced struct {
	service geo.Service
	// names are those of its rows, in the order of the requests.
	names     []string
	requests  []request
	secondary string
	// account and letters are the permissions, by letter; "" where the table has none.
	account, letters string
	// since is the first version; "" where the table has none.
	since string
}

// request is a form in which the operation is asked for.
type request struct {
	verbs   []string
	path    string
	headers map[string]string
}

// cells returns the cells of the table under a heading.
func cells(t *testing.T, file, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol", file))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n"+heading)
	require.True(t, found, "%s has no %s", file, heading)
	var out [][]string
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "|"):
			row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			out = append(out, row)
		case strings.HasPrefix(line, "#"), len(out) > 0:
			require.Greater(t, len(out), 2)
			return out[2:] // Behind the header and its rule.
		}
	}
	return out[2:]
}

var (
	verbPattern   = regexp.MustCompile(`\b(GET|HEAD|PUT|POST|MERGE|PATCH|DELETE|OPTIONS)\b`)
	pathPattern   = regexp.MustCompile(`/(\{[cbqid]+\}|messages|Tables\('T'\)|Tables|T\(…\)|T|\$batch|…)?(/(\{[a-z]+\}|messages))*(\?[^\s,;]*)?`)
	headerPattern = regexp.MustCompile(`(x-ms-[a-z-]+)(: ([a-z]+))?`)
	letterPattern = regexp.MustCompile("`([a-z])`")
)

// parseRequests reads the forms of a request: verbs before each path, and headers.
// "same" takes over what before has.
func parseRequests(cell string, before []request) []request {
	plain := strings.ReplaceAll(strings.ReplaceAll(cell, "`", ""), "immutabilityPolicies", "immutabilitypolicies")
	plain = strings.ReplaceAll(strings.ReplaceAll(plain, "T(PartitionKey='',RowKey='')", "T(…)"), "()", "")
	plain, _, _ = strings.Cut(plain, " (") // Remarks.
	plain, _, _ = strings.Cut(plain, ", or POST +")
	path, headers, _ := strings.Cut(plain, " + ")
	var out []request
	if strings.HasPrefix(path, "same") {
		for _, r := range before {
			out = append(out, request{r.verbs, r.path, maps.Clone(r.headers)})
		}
	}
	path = strings.Replace(path, "any path", "/…", 1)
	at := 0
	for _, loc := range pathPattern.FindAllStringIndex(path, -1) {
		verbs := verbPattern.FindAllString(path[at:loc[0]], -1)
		if len(verbs) == 0 && len(out) > 0 {
			verbs = out[len(out)-1].verbs // Another spelling of the path, or parameters.
		}
		if p := path[loc[0]:loc[1]]; len(verbs) > 0 && (p != "/" || strings.Contains(path, "/…") || len(path) == loc[1]) {
			out = append(out, request{verbs, p, map[string]string{}})
		}
		at = loc[1]
	}
	for i := range out {
		for _, h := range headerPattern.FindAllStringSubmatch(headers, -1) {
			value := h[3]
			switch {
			case h[1] == "x-ms-blob-type":
				value = "BlockBlob"
			case value == "":
				value = "x"
			}
			out[i].headers[h[1]] = value
		}
	}
	return out
}

// find is Find for a request of the reference.
func (r request) find(t *testing.T, s geo.Service, verb string) Match {
	t.Helper()
	path, query, _ := strings.Cut(r.path, "?")
	var params []string
	for p := range strings.SplitSeq(query, "&") {
		if !strings.HasSuffix(p, "…") && !strings.HasSuffix(p, "=") { // A value of the client's.
			params = append(params, p)
		}
	}
	q, err := protocol.ParseQuery(strings.Join(params, "&"))
	require.NoError(t, err)
	hr := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, value := range r.headers {
		hr.Header.Set(name, value)
	}
	pr := &protocol.Request{HTTP: hr, Query: q}
	pr.Service = s
	if m, is := IsPreflight(verb); is {
		return m
	}
	on := map[string]Resource{
		"/{c}": Container, "/{c}/{b}": Blob, "/…": BlobAccount,
		"/{q}": Queue, "/{q}/messages": Messages, "/{q}/messages/{id}": Message,
		"/Tables": Tables, "/Tables('T')": Table, "/T": Entities, "/T(…)": Entity, "/$batch": Batch,
	}[path]
	if path == "/" {
		on = map[geo.Service]Resource{geo.Blob: BlobAccount, geo.Queue: QueueAccount}[s]
		if q.Get("restype") == "service" {
			on = Service
		}
	}
	require.NotZero(t, on, "%s", r.path)
	return Find(pr, on, verb)
}

// named is the name of an operation of the reference without its spaces and remarks.
func named(s geo.Service, text string) string {
	text, _, _ = strings.Cut(text, " (")
	if name, other := map[string]string{
		"Get Account Information": "GetAccountInformation", "Set legal hold": "SetLegalHold", "Find Blobs by Tags": "FindBlobsByTags",
		"Get Table": "QueryTable", "Get Entity": "QueryEntity", "EGT": "EntityGroupTransaction",
		// An upsert is an update without If-Match.
		"Insert Or Replace": "UpdateEntity", "Insert Or Merge": "MergeEntity",
	}[text]; other {
		return name
	}
	for _, call := range []string{"Service Properties", "Service Stats"} {
		if verb, found := strings.CutSuffix(text, " "+call); found {
			service := map[geo.Service]string{geo.Blob: "Blob", geo.Queue: "Queue", geo.Table: "Table"}[s]
			verb, _, _ = strings.Cut(verb, " ") // Some tables name the service.
			return verb + service + strings.ReplaceAll(call, " ", "")
		}
	}
	return strings.ReplaceAll(text, " ", "")
}

// reference reads the tables of operations.
func reference(t *testing.T) []referenced {
	var out []referenced
	var before []request
	for _, c := range cells(t, "blob.md", "## 4. Operation index") {
		r := referenced{service: geo.Blob, requests: parseRequests(c[3], before), secondary: c[6]}
		before = r.requests
		of, _, _ := strings.Cut(c[5], ", source") // What is copied is asked about by itself.
		for _, m := range letterPattern.FindAllStringSubmatch(of, -1) {
			r.account += m[1]
		}
		r.names = []string{named(geo.Blob, c[1])}
		if c[1] == "Set / delete immutability policy" {
			r.names = []string{"SetImmutabilityPolicy", "DeleteImmutabilityPolicy"}
		}
		r.letters = r.account
		if strings.HasPrefix(c[5], "account") {
			r.letters = ""
		}
		out = append(out, r)
	}
	for _, c := range cells(t, "queue.md", "## 5. Operation index") {
		r := referenced{service: geo.Queue, names: []string{named(geo.Queue, c[0])}, requests: parseRequests(c[1], nil), secondary: c[5]}
		if _, acct, has := strings.Cut(c[4], "+"); has {
			r.account = strings.Join(regexp.MustCompile(`\b[a-z]\b`).FindAllString(acct, -1), "")
		}
		if len(c[3]) == 1 {
			r.letters = c[3]
		}
		out = append(out, r)
	}
	for _, c := range cells(t, "table.md", "### 9.1 Overview") {
		since := c[3]
		if since == "2008" {
			since = ""
		}
		if c[0] == "Get / Set Table ACL" {
			const path = "/T?comp=acl"
			require.Contains(t, c[1], "`GET` (HEAD T3) / `PUT "+path+"`")
			out = append(out,
				referenced{service: geo.Table, names: []string{"GetTableACL"}, since: since, requests: []request{{[]string{"GET", "HEAD"}, path, nil}}},
				referenced{service: geo.Table, names: []string{"SetTableACL"}, since: since, requests: []request{{[]string{"PUT"}, path, nil}}})
			continue
		}
		if strings.HasPrefix(c[0], "Get / Set Service") {
			continue // They are those of service.md, whose paths the next loop reads.
		}
		out = append(out, referenced{service: geo.Table, names: []string{named(geo.Table, c[0])}, since: since, requests: parseRequests(c[1], nil)})
	}
	for _, c := range cells(t, "service.md", "## 1. Calls covered")[:4] {
		for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
			out = append(out, referenced{service: s, names: []string{named(s, c[0])}, requests: parseRequests(c[1], nil), secondary: c[3]})
		}
	}
	return out
}

// Every operation of the tables in docs/protocol is found by its request, under its name,
// with its rule for -secondary, its permissions and its first version where the tables have
// them; and every row of ours is in a table of the reference.
func TestReference(t *testing.T) {
	seen := map[geo.Service]map[string]bool{geo.Blob: {}, geo.Queue: {}, geo.Table: {}}
	for _, want := range reference(t) {
		require.NotEmpty(t, want.requests, "%v", want.names)
		for i, r := range want.requests {
			for j, verb := range r.verbs {
				name := want.names[0]
				if len(want.names) == len(r.verbs) {
					name = want.names[j]
				}
				m := r.find(t, want.service, verb)
				at := []any{"%s %s %s: %d", want.service, verb, r.path, i}
				require.Equal(t, name, m.Name, at...)
				require.Equal(t, NoFault, m.Fault, at...)
				seen[want.service][m.Name] = true
				requireSecondary(t, want, m)
				if name == "GetAccountInformation" || m.SAS.Type == "" {
					require.Empty(t, want.account, at...) // Any signature, or none at all.
				} else if want.account != "" || want.letters != "" {
					require.Equal(t, letters(want.account), letters(m.SAS.Account), at...)
					require.Equal(t, letters(want.letters), letters(m.SAS.Service), at...)
				}
				if want.since != "" && m.Name != "UpdateEntity" && m.Name != "MergeEntity" && m.Name != preflight.Name {
					require.EqualValues(t, want.since, m.Since, at...)
				}
			}
		}
	}
	for s, names := range seen {
		for _, o := range Of(s) {
			require.True(t, names[o.Name], "the reference has no %s", o.Name)
		}
	}
}

// requireSecondary compares the rule for -secondary.
func requireSecondary(t *testing.T, want referenced, m Match) {
	t.Helper()
	rule := map[string]Secondary{
		"yes": Yes, "**yes**": Yes, "‡ yes": Yes, "no": No, "**no**": No, "403": No, "**only**": Only, "only there": Only,
	}
	if m.Name == "GetUserDelegationKey" {
		return // The references differ: queue.md says no, and so do we.
	}
	if want.secondary != "" {
		s, known := rule[want.secondary]
		require.True(t, known, want.secondary)
		require.Equal(t, s, m.Secondary, m.Name)
	}
}

func letters(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(slices.Compact(b))
}

// What an operation is allowed to do follows from its effect: a read is served on both
// sides, a write on the primary alone; a public read is a read.
func TestRowsAgree(t *testing.T) {
	for _, s := range geo.Services {
		for _, o := range Of(s) {
			require.Equal(t, o.Effect == Writes, o.Secondary == No, o.Name)
			require.Equal(t, o.Body.Kind == None, len(o.Body.Limits) == 0, o.Name)
			require.True(t, o.Public == Never || o.Effect == Reads, o.Name)
			require.True(t, o.Takes&(IfMatch|IfNoneMatch) == 0 || o.On == Blob || o.On == Entity, o.Name)
			require.Equal(t, strings.ToLower(o.Comp+o.Restype), o.Comp+o.Restype)
			require.NotZero(t, o.Verbs)
			if o.Since != "" {
				_, err := protocol.Effective(string(o.Since))
				require.NoError(t, err, o.Name)
			}
			for i, limit := range o.Body.Limits {
				require.Equal(t, i == len(o.Body.Limits)-1, limit.Since == "", o.Name)
			}
		}
	}
}
