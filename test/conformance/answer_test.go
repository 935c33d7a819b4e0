package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// answer is what a request got.
type answer struct {
	rig     *rig
	request *request
	status  int
	header  http.Header
	body    string
}

// Forms of bodies (protocol/table.md 2.4, 8.1).
type form int

const (
	jsonForm form = iota
	atomForm
	xmlForm // of the operations on the service and of an ACL
)

const (
	guidPattern  = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	stampPattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,6}[1-9])?Z`
	// timePattern is the time in an error, which has all seven digits.
	timePattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z`
)

// form is that of the answer to a request.
func (q *request) form() form {
	version, accept := q.header.Get("X-Ms-Version"), q.header.Get("Accept")
	switch {
	case strings.Contains(q.target, "comp=acl") || strings.Contains(q.target, "restype="):
		return xmlForm
	case !slices.Contains(versions(), version): // Accept decides (section 2.1).
		if strings.Contains(accept, "json") {
			return jsonForm
		}
		return atomForm
	case version < "2013-08-15", version < "2015-12-11" && !strings.Contains(accept, "json"):
		return atomForm
	}
	return jsonForm
}

// versions are those that cases send, and that are ones.
func versions() []string {
	return []string{"", "2009-04-14", "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2014-02-14", "2015-12-11", "2018-03-28", latest}
}

// message says which answer a check is about.
func (a *answer) message() string {
	return fmt.Sprintf("%s %.300s\n%d %v\n%.2000s", a.request.method, a.request.target, a.status, a.header, a.body)
}

// plumbing checks the headers that all answers have (protocol/table.md 3).
func (a *answer) plumbing() {
	t, version := a.rig, a.request.header.Get("X-Ms-Version")
	t.Helper()
	require.Regexp(t, "^"+guidPattern+"$", a.header.Get("X-Ms-Request-Id"), a.message())
	_, err := http.ParseTime(a.header.Get("Date"))
	require.NoError(t, err, a.message())
	require.Equal(t, a.request.header.Get("X-Ms-Client-Request-Id"), a.header.Get("X-Ms-Client-Request-Id"), a.message())
	if slices.Contains(versions(), version) {
		a.ofVersion(version)
	}
	if a.status == http.StatusNoContent || a.status == http.StatusAccepted && a.request.form() == xmlForm {
		require.Empty(t, a.body+a.header.Get("Content-Type"), a.message())
	}
	tagged := a.status < 300 && !strings.Contains(a.request.target, "/Tables") && a.request.method != "DELETE" &&
		(a.request.method != "GET" || strings.Contains(a.request.target, "(PartitionKey=") || strings.Contains(a.request.target, "(RowKey=")) &&
		!strings.Contains(a.request.target, "/$batch") && a.request.form() != xmlForm
	if tagged {
		require.Regexp(t, `^W/"datetime'[^:']+'"$`, a.tag(), a.message())
		require.Regexp(t, "^"+stampPattern+"$", a.stamp(), a.message())
	} else {
		require.Empty(t, a.tag(), a.message())
	}
	if a.status < 300 && a.request.form() != xmlForm && !strings.Contains(a.request.target, "/$batch") {
		require.Equal(t, "no-cache", a.header.Get("Cache-Control"), a.message())
	}
}

// ofVersion checks the headers that depend on the version.
func (a *answer) ofVersion(version string) {
	t := a.rig
	t.Helper()
	server, echo, sniff, data := "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", version, "nosniff", ""
	if version < "2009-09-19" {
		echo = ""
	}
	if version < "2011-08-18" {
		server = "Table Service Version 1.0 Microsoft-HTTPAPI/2.0"
	}
	if version < "2013-08-15" {
		sniff, data = "", "1.0;" // Which 2009 answers carry everywhere (section 2.3).
	}
	require.Equal(t, server, a.header.Get("Server"), a.message())
	require.Equal(t, echo, a.header.Get("X-Ms-Version"), a.message())
	if a.request.form() == xmlForm {
		return
	}
	require.Equal(t, sniff, a.header.Get("X-Content-Type-Options"), a.message())
	if a.status != http.StatusForbidden {
		require.Equal(t, data, a.header.Get("DataServiceVersion"), a.message())
	}
}

// is requires a success, whose document has the Content-Type that was asked for.
func (a *answer) is(status int) *answer {
	a.rig.Helper()
	require.Equal(a.rig, status, a.status, a.message())
	if status != http.StatusOK && status != http.StatusCreated {
		return a
	}
	want := "application/json;odata=" + a.request.level() + ";streaming=true;charset=utf-8"
	switch a.request.form() {
	case atomForm:
		want = "application/atom+xml;charset=utf-8"
	case xmlForm:
		want = "application/xml"
	}
	require.Equal(a.rig, want, a.header.Get("Content-Type"), a.message())
	return a
}

// level is the level of metadata that a request asks for.
func (q *request) level() string {
	_, query, _ := strings.Cut(q.target, "?")
	_, format, has := strings.Cut(query, "$format=")
	if !has {
		format = q.header.Get("Accept")
	}
	for _, level := range []string{"nometadata", "fullmetadata"} {
		if strings.Contains(format, level) {
			return level
		}
	}
	return "minimalmetadata"
}

// fails requires an error, in the form that the request gets. An empty message is one that the
// protocol does not quote: any is right.
func (a *answer) fails(status int, code, message string) *answer {
	a.rig.Helper()
	require.Equal(a.rig, status, a.status, a.message())
	kind := map[form]string{jsonForm: "application/json;odata=" + a.request.level() + ";streaming=true;charset=utf-8"}[a.request.form()]
	if kind == "" {
		kind = "application/xml"
	}
	require.Equal(a.rig, kind, a.header.Get("Content-Type"), a.message())
	if got := a.header.Get("X-Ms-Error-Code"); got != "" || a.request.form() == xmlForm {
		require.Equal(a.rig, code, got, a.message())
	}
	requireError(a.rig, a.request.form(), a.body, a.header.Get("X-Ms-Request-Id"), code, message)
	return a
}

// requireError requires a body to be that of an error (protocol/table.md 8.1).
func requireError(r *rig, f form, body, id, code, message string) {
	r.Helper()
	pattern := map[form]string{
		jsonForm: `^\{"odata\.error":\{"code":"(\w+)","message":\{"lang":"en-US","value":(".*\\nRequestId:` + id + `\\nTime:` + timePattern + `")\}\}\}$`,
		atomForm: `^<\?xml version="1\.0" encoding="utf-8" standalone="yes"\?><error xmlns="http://schemas\.microsoft\.com/ado/2007/08/dataservices/metadata">` +
			`<code>(\w+)</code><message xml:lang="en-US">((?s:.*))</message></error>$`,
		xmlForm: `^(?:\x{FEFF})?<\?xml version="1\.0" encoding="utf-8"\?><m:error xmlns:m="http://schemas\.microsoft\.com/ado/2007/08/dataservices/metadata">` +
			`<m:code>(\w+)</m:code><m:message xml:lang="en-US">((?s:.*)\nRequestId:` + id + `\nTime:` + timePattern + `)</m:message></m:error>$`,
	}[f]
	found := regexp.MustCompile(pattern).FindStringSubmatch(body)
	require.NotNil(r, found, "no error of this form: %s", body)
	require.Equal(r, code, found[1], body)
	got := found[2]
	if f == jsonForm {
		require.NoError(r, json.Unmarshal([]byte(found[2]), &got), body)
	} else {
		got = unescapeXML(got)
	}
	got, _, _ = strings.Cut(got, "\nRequestId:")
	require.NotEmpty(r, got, body)
	if message != "" {
		require.Equal(r, message, got)
	}
}

func unescapeXML(text string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&apos;", "'", "&amp;", "&").Replace(text)
}

// tag is the ETag of the answer.
func (a *answer) tag() string { return a.header.Get("ETag") }

// stamp is the Timestamp of which the ETag is made.
func (a *answer) stamp() string { return stampOf(a.tag()) }

// time is the Timestamp of which the ETag is made.
func (a *answer) time() time.Time {
	a.rig.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.stamp())
	require.NoError(a.rig, err, a.message())
	return at
}

func stampOf(tag string) string {
	text, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(tag, `W/"datetime'`), `'"`))
	if err != nil {
		return ""
	}
	return text
}

// has requires the entity as the body, at minimal metadata: its system properties, and the others
// as they stand.
func (a *answer) has(pk, rk, others string) *answer {
	a.rig.Helper()
	base := a.rig.base()
	want := fmt.Sprintf(`{"odata.metadata":%q,"odata.etag":%s,"PartitionKey":%s,"RowKey":%s,"Timestamp":%q%s}`,
		base+"$metadata#"+a.rig.table+"/@Element", quoted(a.tag()), quoted(pk), quoted(rk), a.stamp(), others)
	requireJSONText(a.rig, want, a.body)
	return a
}

// requireJSONText requires a document with these members in this order, whatever way its strings
// are escaped in.
func requireJSONText(r *rig, want, got string) {
	r.Helper()
	require.Equal(r, members(r, want), members(r, got), got)
	require.NotContains(r, got, "\n")
}

// members are the tokens of a JSON document, in order; numbers as they are written.
func members(r *rig, text string) (out []string) {
	r.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return append(out, err.Error()) // io.EOF at the end of a whole document.
		}
		out = append(out, fmt.Sprintf("%T %v", token, token))
	}
}

// quoted is a text as a JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// keys requires a feed of entities, and returns their keys as pk/rk in their order.
func (a *answer) keys() []string {
	a.rig.Helper()
	a.is(http.StatusOK)
	var feed struct {
		Metadata string `json:"odata.metadata"`
		Value    []map[string]any
	}
	require.NoError(a.rig, json.Unmarshal([]byte(a.body), &feed), a.message())
	want := a.rig.base() + "$metadata#" + a.rig.table
	require.Equal(a.rig, want, feed.Metadata)
	require.NotNil(a.rig, feed.Value, a.message())
	keys := []string{}
	for _, row := range feed.Value {
		require.Equal(a.rig, row["Timestamp"], stampOf(fmt.Sprint(row["odata.etag"])), a.message())
		keys = append(keys, fmt.Sprint(row["PartitionKey"], "/", row["RowKey"]))
	}
	return keys
}

// comparable is the answer without what differs between two answers to one question, and between
// the two locations.
func (a *answer) comparable() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.status)
	for _, name := range sorted(a.header) {
		switch name {
		case "Date", "X-Ms-Request-Id", "Content-Length", "X-Ms-Client-Request-Id":
		default:
			fmt.Fprintln(&b, name, a.header[name])
		}
	}
	b.WriteString("\n" + a.body)
	text := strings.ReplaceAll(b.String(), a.rig.secondaryBase(), a.rig.base())
	text = strings.ReplaceAll(text, a.header.Get("X-Ms-Request-Id"), "ID")
	text = regexp.MustCompile(`(nTime:|\nTime:|<updated>)\d{4}-\d\d-\d\dT[\d:.]+Z`).ReplaceAllString(text, "${1}NOW")
	return text
}

func sorted(h http.Header) (names []string) {
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
