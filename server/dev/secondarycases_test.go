package dev

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// blobCase is a request of the blob service. In its path and its header values {at} is the endpoint of the primary, {tag} the tag of
// cont/a, and {1} and {2} are snapshots of cont/a and cont/b.
type blobCase struct {
	// op is the operation's name in the table of operations; that of unbuilt ones is not.
	op, verb, target string
	// want is the status and the code of the answer at the primary.
	want   string
	header []string
}

// blobReads are the cases of protocol/blob.md that may be read at -secondary, by section. What they read is of writeAll.
var blobReads = []blobCase{
	{"GetAccountInformation", "GET", "/?restype=account&comp=properties", "200", nil}, // S5
	{"GetAccountInformation", "HEAD", "/cont/a?restype=account&comp=properties", "200", nil},
	{"GetBlobServiceProperties", "GET", "/?restype=service&comp=properties", "200", nil},       // S2
	{"ListContainers", "GET", "/?comp=list&include=metadata,system&maxresults=50", "200", nil}, // S1, 1.3
	{"GetContainerProperties", "GET", "/cont?restype=container", "200", nil},                   // C2
	{"GetContainerProperties", "HEAD", "/$root?restype=container", "200", nil},
	{"GetContainerProperties", "GET", "/none?restype=container", "404 ContainerNotFound", nil},
	{"GetContainerMetadata", "GET", "/cont?restype=container&comp=metadata", "200", nil}, // C3
	{"GetContainerACL", "GET", "/cont?restype=container&comp=acl", "200", nil},           // C5
	{"ListBlobs", "GET", "/cont?restype=container&comp=list", "200", nil},                // C10
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=snapshots", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=metadata", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=uncommittedblobs", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=copy", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=tags", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&include=copy,metadata,tags,uncommittedblobs&prefix=a&delimiter=/", "200", nil},
	{"ListBlobs", "GET", "/cont?restype=container&comp=list&startFrom=a&endBefore=c", "200", nil},
	{"ListBlobs", "GET", "/$web?restype=container&comp=list", "200", nil},
	{"GetBlob", "GET", "/cont/a", "200", nil}, // B1
	{"GetBlob", "GET", "/cont/a", "206", []string{"x-ms-range", "bytes=3-20000", "x-ms-range-get-content-md5", "true"}},
	{"GetBlob", "GET", "/cont/a", "416 InvalidRange", []string{"x-ms-range", "bytes=90000-"}},
	{"GetBlob", "GET", "/cont/a", "412 ConditionNotMet", []string{"x-ms-if-tags", "k <> 'v'"}},
	{"GetBlob", "GET", "/cont/a", "412 ConditionNotMet", []string{"If-Match", "\"0x1\""}},
	{"GetBlob", "GET", "/cont/a", "304 ConditionNotMet", []string{"If-None-Match", "{tag}"}},
	{"GetBlob", "GET", "/cont/a", "412 LeaseIdMismatchWithBlobOperation", []string{"x-ms-lease-id", leaseB}},
	{"GetBlob", "GET", "/cont/a?snapshot={1}", "200", nil},
	{"GetBlob", "GET", "/cont/a?snapshot={2}", "404 BlobNotFound", nil}, // Not of this blob.
	{"GetBlob", "GET", "/cont/copy", "200", nil},
	{"GetBlob", "GET", "/cont/log", "200", nil},
	{"GetBlob", "GET", "/cont/archived", "409 BlobArchived", nil},
	{"GetBlob", "GET", "/cont/none", "404 BlobNotFound", nil},
	{"GetBlob", "GET", "/r", "200", nil},
	{"GetBlob", "GET", "/$root/r", "200", nil},
	{"GetBlob", "GET", "/$web/index.html", "200", nil},
	{"GetBlobProperties", "HEAD", "/cont/a", "200", nil}, // B2
	{"GetBlobProperties", "HEAD", "/cont/a?snapshot={1}", "200", nil},
	{"GetBlobProperties", "HEAD", "/cont/copy", "200", nil},
	{"GetBlobProperties", "HEAD", "/cont/log", "200", nil},
	{"GetBlobProperties", "HEAD", "/cont/archived", "200", nil},
	{"GetBlobMetadata", "GET", "/cont/a?comp=metadata", "200", nil}, // B3
	{"GetBlobMetadata", "HEAD", "/cont/a?comp=metadata&snapshot={1}", "200", nil},
	{"GetBlobTags", "GET", "/cont/a?comp=tags", "200", nil}, // B6
	{"GetBlobTags", "GET", "/cont/a?comp=tags&snapshot={1}", "200", nil},
	{"GetBlockList", "GET", "/cont/a?comp=blocklist&blocklisttype=all", "200", nil}, // B13
	{"GetBlockList", "GET", "/cont/a?comp=blocklist&snapshot={1}", "200", nil},
	{"GetBlockList", "GET", "/cont/copy?comp=blocklist", "200", nil},
	{"GetBlockList", "GET", "/cont/staged?comp=blocklist&blocklisttype=uncommitted", "200", nil},
}

// writeAll are the writes that the reads show.
func writeAll() []blobCase {
	put := []string{"x-ms-blob-type", "BlockBlob"}
	lease := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", leaseA}
	return []blobCase{
		{"CreateContainer", "PUT", "/cont?restype=container", "201", []string{"x-ms-meta-k", "v"}},
		{"CreateContainer", "PUT", "/other?restype=container", "201", nil},
		{"CreateContainer", "PUT", "/$root?restype=container", "201", nil},
		{"CreateContainer", "PUT", "/$web?restype=container", "201", nil},
		{"PutBlock", "PUT", "/cont/a?comp=block&blockid=AAAA", "201", nil},
		{"PutBlock", "PUT", "/cont/a?comp=block&blockid=AAAB", "201", nil},
		{"PutBlockList", "PUT", "/cont/a?comp=blocklist", "201", []string{"x-ms-meta-k", "v", "x-ms-tags", "k=v&l=", "x-ms-access-tier", "Cool", "x-ms-blob-content-type", "text/x"}},
		{"SnapshotBlob", "PUT", "/cont/a?comp=snapshot", "201", []string{"x-ms-meta-of", "snapshot"}},
		{"PutBlock", "PUT", "/cont/a?comp=block&blockid=AAAC", "201", nil},
		{"PutBlob", "PUT", "/cont/b", "201", put},
		{"SnapshotBlob", "PUT", "/cont/b?comp=snapshot", "201", nil},
		{"PutBlob", "PUT", "/other/a", "201", put},
		{"PutBlob", "PUT", "/cont/archived", "201", append(put, "x-ms-access-tier", "Archive")},
		{"PutBlob", "PUT", "/cont/log", "201", []string{"x-ms-blob-type", "AppendBlob"}},
		{"AppendBlock", "PUT", "/cont/log?comp=appendblock", "201", nil},
		{"AppendBlobSeal", "PUT", "/cont/log?comp=seal", "200", nil},
		{"PutBlock", "PUT", "/cont/staged?comp=block&blockid=AAAA", "201", nil},
		{"CopyBlob", "PUT", "/cont/copy", "202", []string{"x-ms-copy-source", "{at}/cont/a"}},
		{"PutBlob", "PUT", "/$root/r", "201", put},
		{"PutBlob", "PUT", "/$web/index.html", "201", put},
		{"LeaseBlob", "PUT", "/cont/a?comp=lease", "201", lease},
		{"LeaseContainer", "PUT", "/cont?restype=container&comp=lease", "201", lease},
	}
}

// secondaryCases sends cases to a cluster.
type secondaryCases struct {
	*blobTest
	t   *testing.T
	key []byte
	// filled has the place-holders.
	filled *strings.Replacer
}

// signature is what a request is signed with: the account's key, or a shared access signature.
type signature struct {
	name   string
	on     auth.Resource
	params url.Values // nil for the key
}

func sasOf(name string, on auth.Resource, params string) signature {
	values, err := url.ParseQuery(params)
	if err != nil {
		panic(err)
	}
	values.Set("sv", "2024-08-04")
	values.Set("se", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	return signature{name, on, values}
}

// send sends a case to an endpoint, again where a range had no leader for a moment.
func (s *secondaryCases) send(c blobCase, endpoint string, by signature) answer {
	s.t.Helper()
	path, query, _ := strings.Cut(s.filled.Replace(c.target), "?")
	body := ""
	switch c.op {
	case "PutBlock", "AppendBlock", "PutBlob":
		if !slices.Contains(c.header, "AppendBlob") {
			body = string(blobContent(20_000+len(c.target), 1))
		}
	case "PutBlockList":
		body = "<BlockList><Latest>AAAA</Latest><Latest>AAAB</Latest></BlockList>"
	}
	values, err := url.ParseQuery(query)
	require.NoError(s.t, err)
	if by.params != nil {
		signed, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: blobTestAccount}, by.on, by.params, s.key)
		require.NoError(s.t, err)
		more, err := url.ParseQuery(signed)
		require.NoError(s.t, err)
		for name, value := range more {
			values[name] = value
		}
	}
	for end := time.Now().Add(leaderWait); ; <-time.After(testTick) {
		r, err := http.NewRequestWithContext(s.t.Context(), c.verb, endpoint+path+"?"+values.Encode(), strings.NewReader(body))
		require.NoError(s.t, err)
		r.Header.Set("x-ms-version", "2026-12-06")
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], s.filled.Replace(c.header[i+1]))
		}
		if by.params == nil {
			require.NoError(s.t, auth.Sign(r, geo.Blob, blobTestAccount, s.key, time.Now()))
		}
		a, err := roundTrip(r)
		require.NoError(s.t, err)
		if a.status < 500 || time.Now().After(end) {
			return a
		}
	}
}

func (s *secondaryCases) near() string { return strings.TrimSuffix(s.first.URL(), "/") }

func (s *secondaryCases) far() string { return strings.TrimSuffix(s.second.URL(), "/") }

// coded is the status of an answer, with the code of a refusal.
func coded(a answer) string {
	return strings.TrimSpace(fmt.Sprint(a.status, " ", a.header.Get("x-ms-error-code")))
}

// shown is what of an answer is the same at both endpoints: all but the time, the request's id, and the endpoint in a listing.
func (s *secondaryCases) shown(a answer) string {
	for _, name := range []string{"Date", "X-Ms-Request-Id"} {
		delete(a.header, name)
	}
	if a.body != "" { // It is the length of what is compared, or has the endpoint in it.
		delete(a.header, "Content-Length")
	}
	body := strings.ReplaceAll(a.body, geo.SecondarySuffix, "")
	if a.status >= http.StatusBadRequest { // What is behind the code is the id and the time.
		body, _, _ = strings.Cut(body, "\n")
	}
	return fmt.Sprint(a.status, " ", a.header, "\n", body)
}

// newSecondaryCases starts a cluster whose account has what the cases read.
func newSecondaryCases(t *testing.T) *secondaryCases {
	t.Helper()
	s := &secondaryCases{blobTest: startBlobTest(t), t: t}
	require.NoError(t, s.FinalizeNew(t.Context()))
	var err error
	s.key, err = base64.StdEncoding.DecodeString(blobTestKey)
	require.NoError(t, err)
	fill, snapshots := []string{"{at}", s.near()}, 0
	for _, c := range writeAll() {
		s.filled = strings.NewReplacer(fill...)
		a := s.send(c, s.near(), signature{})
		require.Equal(t, c.want, coded(a), "%+v: %s", c, a.body)
		switch c.op {
		case "PutBlockList":
			fill = append(fill, "{tag}", a.header.Get("ETag"))
		case "SnapshotBlob":
			snapshots++
			fill = append(fill, fmt.Sprintf("{%d}", snapshots), a.header.Get("x-ms-snapshot"))
		}
	}
	s.filled = strings.NewReplacer(fill...)
	return s
}

// signatures are those that permit to read a case, besides the key.
func (s *secondaryCases) signatures(c blobCase) (out []signature) {
	path, query, _ := strings.Cut(s.filled.Replace(c.target), "?")
	values, err := url.ParseQuery(query)
	require.NoError(s.t, err)
	container, name, _ := strings.Cut(path[1:], "/")
	if path == "/r" {
		container, name = "$root", "r"
	}
	of, row := auth.Resource{Container: container, Blob: name}, operation.Named(geo.Blob, c.op)
	if row.SAS.Account != "" || row.SAS.Any {
		out = append(out, sasOf("account", auth.Resource{}, "ss=b&srt=sco&sp=rlt"))
	}
	if container != "" && (row.SAS.Service != "" || row.SAS.Any) {
		out = append(out, sasOf("container", auth.Resource{Container: container}, "sr=c&sp=rlt"))
	}
	if name == "" {
		return out
	}
	if at := values.Get("snapshot"); at != "" {
		return append(out, sasOf("snapshot", of, "sr=bs&sp=rt&snapshot="+url.QueryEscape(at)))
	}
	return append(out, sasOf("blob", of, "sr=b&sp=rt"))
}

// requireReads requires that every case is answered as before, at both endpoints, by the key and by each signature.
func (s *secondaryCases) requireReads(want map[string]string) {
	s.t.Helper()
	for _, c := range blobReads {
		for _, endpoint := range []string{s.near(), s.far()} {
			for _, by := range append(s.signatures(c), signature{name: "key"}) {
				require.Equal(s.t, want[fmt.Sprint(c)], s.shown(s.send(c, endpoint, by)), "%v at %s by %s", c, endpoint, by.name)
			}
		}
	}
}

// requireRefused requires that every operation that is not read at -secondary is refused there by all that would permit it at the
// primary, and says why.
func (s *secondaryCases) requireRefused() {
	s.t.Helper()
	paths := map[operation.Resource]string{
		operation.Service: "/", operation.BlobAccount: "/", operation.Container: "/cont", operation.Blob: "/cont/a",
	}
	for _, o := range operation.Of(geo.Blob) {
		if o.Secondary != operation.No {
			continue
		}
		query := url.Values{}
		for name, value := range map[string]string{"restype": o.Restype, "comp": o.Comp} {
			if value != "" {
				query.Set(name, value)
			}
		}
		c := blobCase{op: o.Name}
		for _, f := range o.With {
			value := f.Value
			if value == "" {
				value = "{at}/cont/b"
			}
			if f.Query != "" {
				query.Set(f.Query, value)
				continue
			}
			c.header = append(c.header, f.Header, value)
		}
		require.NotEmpty(s.t, paths[o.On], o.Name)
		c.target = paths[o.On] + "?" + query.Encode()
		ways := []signature{{name: "key"}}
		if o.SAS.Account != "" {
			ways = append(ways, sasOf("account", auth.Resource{}, "ss=b&srt=sco&sp=rwdlactxyi"))
		}
		if o.SAS.Service != "" && (o.On == operation.Container || o.On == operation.Blob) {
			ways = append(ways, sasOf("container", auth.Resource{Container: "cont"}, "sr=c&sp=racwdxltyi"))
		}
		for verb := range strings.SplitSeq(o.Verbs.String(), ",") {
			c.verb = strings.TrimSpace(verb)
			for _, by := range ways {
				a := s.send(c, s.far(), by)
				require.Equal(s.t, "403 InsufficientAccountPermissions", coded(a), "%+v by %s: %s", c, by.name, a.body)
				require.Contains(s.t, a.body, "Write operations are not allowed.", o.Name)
			}
		}
	}
}

// requireApart requires that a signature for one blob, snapshot or container opens no other, at either endpoint.
func (s *secondaryCases) requireApart() {
	s.t.Helper()
	first := url.QueryEscape(s.filled.Replace("{1}"))
	a, b := auth.Resource{Container: "cont", Blob: "a"}, auth.Resource{Container: "cont", Blob: "b"}
	for _, c := range []struct {
		by    signature
		opens string
		none  []string
	}{
		{sasOf("blob", a, "sr=b&sp=rt"), "/cont/a", []string{"/cont/b", "/other/a", "/cont/copy", "/cont/A", "/cont/a%2F", "/a"}},
		{sasOf("other blob", b, "sr=b&sp=rt"), "/cont/b", []string{"/cont/a", "/cont/a?snapshot={1}"}},
		{sasOf("snapshot", a, "sr=bs&sp=rt&snapshot="+first), "/cont/a?snapshot={1}", []string{"/cont/b?snapshot={1}", "/other/a?snapshot={1}"}},
		{sasOf("container", auth.Resource{Container: "cont"}, "sr=c&sp=rt"), "/cont/b", []string{"/other/a", "/$root/r", "/r", "/$web/index.html"}},
	} {
		for _, endpoint := range []string{s.near(), s.far()} {
			for _, sub := range []string{"", "comp=metadata", "comp=tags", "comp=blocklist"} {
				of := func(target string) blobCase {
					path, query, _ := strings.Cut(target, "?")
					return blobCase{op: "GetBlob", verb: http.MethodGet, target: path + "?" + query + "&" + sub}
				}
				require.Equal(s.t, http.StatusOK, s.send(of(c.opens), endpoint, c.by).status, "%s %s by %s", c.opens, sub, c.by.name)
				for _, target := range c.none {
					got := s.send(of(target), endpoint, c.by)
					require.Equal(s.t, "403 AuthenticationFailed", coded(got), "%s %s at %s by %s", target, sub, endpoint, c.by.name)
				}
			}
		}
	}
	// The same signature with another snapshot, and with none.
	by := sasOf("snapshot", a, "sr=bs&sp=rt&snapshot="+first)
	signed, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: blobTestAccount}, by.on, by.params, s.key)
	require.NoError(s.t, err)
	for _, query := range []string{strings.Replace(signed, first, url.QueryEscape(s.filled.Replace("{2}")), 1), strings.Replace(signed, "snapshot=", "x=", 1)} {
		require.NotEqual(s.t, signed, query)
		for _, endpoint := range []string{s.near(), s.far()} {
			r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, endpoint+"/cont/a?"+query, nil)
			require.NoError(s.t, err)
			got, err := roundTrip(r)
			require.NoError(s.t, err)
			require.Equal(s.t, "403 AuthenticationFailed", coded(got), query)
		}
	}
}

// The cases of protocol/blob.md at -secondary. What is read there is what the primary answers, header by header, by the key and
// by each kind of signature; every other operation of the table is refused there and changes nothing; a signature opens what it
// is for. All of it holds after a planned failover, of leases, copies, snapshots, tags and tiers as well.
//
// Capability: Blobs: Blobs at `-secondary`.
func TestBlobCasesAtSecondary(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	for _, c := range blobReads {
		read[c.op] = true
	}
	for _, o := range operation.Of(geo.Blob) {
		require.Equal(t, o.Built && o.Secondary == operation.Yes, read[o.Name], o.Name)
	}
	s := newSecondaryCases(t)
	want := map[string]string{}
	for _, c := range blobReads {
		a := s.send(c, s.near(), signature{})
		require.Equal(t, c.want, coded(a), "%+v: %s", c, a.body)
		want[fmt.Sprint(c)] = s.shown(a)
	}
	require.Len(t, want, len(blobReads))
	eventually(t, "all at -secondary", func() bool {
		return !slices.ContainsFunc(blobReads, func(c blobCase) bool {
			return want[fmt.Sprint(c)] != s.shown(s.send(c, s.far(), signature{}))
		})
	})
	s.requireReads(want)
	s.requireRefused()
	s.requireApart()
	s.requireReads(want)
	moveTo(t, s.Cluster, blobTestAccount, North, South)
	s.requireReads(want)
	s.requireRefused()
	s.requireApart()
}
