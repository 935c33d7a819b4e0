package api

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/auth"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

// line is a request as text, which the test alters.
type line struct {
	service         geo.Service
	method, uri     string
	params, headers []string
	lite            bool
}

func (l *line) String() string {
	uri := l.uri
	if len(l.params) > 0 {
		uri += "?" + strings.Join(l.params, "&")
	}
	return l.method + " " + uri + " HTTP/1.1\r\n" + strings.Join(l.headers, "\r\n") + "\r\n\r\n"
}

// request is the text as net/http reads it.
func (l *line) request() (*http.Request, error) {
	return http.ReadRequest(bufio.NewReader(strings.NewReader(l.String())))
}

// asks is what the front end takes a request for, once its signature was found right: the operation, and every operand
// that the scheme signs. Empty parameters are as good as absent ones.
func (l *line) asks(s *Server, key []byte) (map[string]string, error) {
	r, err := l.request()
	if err != nil {
		return nil, err
	}
	x := &exchange{Server: s, r: r, service: l.service, req: &protocol.Request{HTTP: r, Scheme: "http"}}
	if err := x.parse(); err != nil {
		return nil, err
	}
	if err := x.signed(&catalog.Account{Name: "acct", Key1: key, Key2: key}); err != nil {
		return nil, err
	}
	if err := errors.Join(protocol.CheckVerb(r.Method), protocol.CheckRepeated(r.Header)); err != nil {
		return nil, err
	}
	out := map[string]string{"operation": x.asked.Name, "container": x.asked.Container, "blob": x.asked.Blob}
	out["resource"], err = url.PathUnescape(x.req.Resource)
	if l.service == geo.Table {
		res, bad := odata.ParsePath(x.req.Resource)
		out["resource"], err = fmt.Sprintf("%+v", res), bad
	}
	if err != nil {
		return nil, err
	}
	for _, p := range x.req.Query {
		if p.Value != "" && p.Name != "include" {
			out["?"+p.Name] = p.Value
		}
	}
	included := slices.Sorted(x.req.Query.Included())
	out["?include"] = strings.Join(slices.Compact(included), ",")
	return out, l.addHeaders(out, r.Header)
}

// addHeaders adds the headers that the scheme signs, as the services read them.
func (l *line) addHeaders(out map[string]string, h http.Header) error {
	names := []string{"Content-Md5", "Content-Type"}
	switch {
	case l.service == geo.Table && l.lite:
		return nil
	case l.service != geo.Table:
		metadata, err := wire.ParseMetadata(h, false)
		if err != nil {
			return err
		}
		out["metadata"] = fmt.Sprint(metadata)
		for name := range h {
			if strings.HasPrefix(name, "X-Ms-") && !strings.HasPrefix(name, "X-Ms-Meta-") {
				names = append(names, name)
			}
		}
		if !l.lite {
			names = append(names, "Content-Encoding", "Content-Language", "If-Match", "If-None-Match", "Range")
		}
	}
	for _, name := range names {
		out[name] = strings.Join(h[name], ",")
	}
	return nil
}

// paths are where the resources are. No first segment is the account's name: see TestContainerNamedAsItsAccount.
var paths = map[operation.Resource][]string{
	operation.Service: {"/"}, operation.BlobAccount: {"/", "/c"}, operation.Container: {"/c"}, operation.Blob: {"/c/b", "/c/a%20b/+%2B"},
	operation.QueueAccount: {"/"}, operation.Queue: {"/q", "/messages"}, operation.Messages: {"/q/messages"}, operation.Message: {"/q/messages/id"},
	operation.Tables: {"/Tables", "/Tables()"}, operation.Table: {"/Tables('T')"}, operation.Entities: {"/T", "/T()"},
	operation.Entity: {"/T(PartitionKey='p',RowKey='r')", "/T(PartitionKey='%27%27',RowKey='a''b%20c')"}, operation.Batch: {"/$batch"},
}

// anyLine is a signed request for any row of the table of operations, as a client sends it.
func anyLine(t *rapid.T, key []byte, now time.Time) *line {
	service := rapid.SampledFrom([]geo.Service{geo.Blob, geo.Queue, geo.Table}).Draw(t, "service")
	row := rapid.SampledFrom(operation.Of(service)).Draw(t, "row")
	l := &line{service: service, lite: rapid.Bool().Draw(t, "lite")}
	l.method = rapid.SampledFrom(strings.Split(row.Verbs.String(), ", ")).Draw(t, "verb")
	l.uri = rapid.SampledFrom(paths[row.On]).Draw(t, "path")
	host := "acct." + service.String() + ".localhost"
	if rapid.Bool().Draw(t, "path style") {
		host, l.uri = "127.0.0.1", "/acct"+strings.TrimSuffix(l.uri, "/")
	}
	l.headers = []string{"Host: " + host, "x-ms-version: 2021-12-02", "x-ms-date: " + now.UTC().Format(http.TimeFormat)}
	for _, p := range []struct{ name, value string }{{"comp", row.Comp}, {"restype", row.Restype}} {
		if p.value != "" {
			l.params = append(l.params, p.name+"="+p.value)
		}
	}
	for _, f := range row.With {
		if value := cmp.Or(f.Value, "x"); f.Query != "" {
			l.params = append(l.params, f.Query+"="+value)
		} else {
			l.headers = append(l.headers, f.Header+": "+value)
		}
	}
	l.params = append(l.params, some(t, "params", []string{
		"prefix=b,zz", "marker=a%20b", "include=metadata,copy", "include=snapshots", "delimiter=", "timeout=30", "versionid", "popreceipt=a:b", "$filter=a%20eq%20'b'",
	})...)
	l.headers = append(l.headers, some(t, "headers", []string{
		"x-ms-meta-a: v w", "x-ms-meta-b: 1,2", "x-ms-lease-id: x", "x-ms-range: bytes=0-1,bytes=2-3", "x-ms-blob-content-type: text/plain; charset=x",
		"Content-Length: 0", "Content-Type: a/b, c", "Content-Encoding: gzip,br", `If-Match: "a","b"`, "Range: bytes=0-1,bytes=2-3", "Content-MD5: AA,BB",
	})...)
	r, err := l.request()
	require.NoError(t, err)
	sign := auth.Sign
	if l.lite {
		sign = auth.SignSharedKeyLite
	}
	require.NoError(t, sign(r, service, "acct", key, now))
	l.headers = append(l.headers, "Authorization: "+r.Header.Get("Authorization"))
	return l
}

// some is a few of a list.
func some(t *rapid.T, label string, list []string) (out []string) {
	for _, item := range list {
		if rapid.IntRange(0, 3).Draw(t, label) == 0 {
			out = append(out, item)
		}
	}
	return out
}

// one picks an index of a list.
func one(t *rapid.T, list []string) int { return rapid.IntRange(0, len(list)-1).Draw(t, "index") }

// spot is where a text may be cut, behind its first byte.
func spot(t *rapid.T, text string) int { return rapid.IntRange(0, len(text)).Draw(t, "spot") }

// ofParams alter the parameters without making another request of what a client may have signed.
var ofParams = map[string]func(t *rapid.T, p []string) []string{
	"an empty copy": func(t *rapid.T, p []string) []string {
		name, _, _ := strings.Cut(p[one(t, p)], "=")
		return slices.Insert(p, rapid.IntRange(0, len(p)).Draw(t, "at"), name+rapid.SampledFrom([]string{"", "="}).Draw(t, "bare"))
	},
	"an empty one": func(t *rapid.T, p []string) []string {
		name := rapid.SampledFrom([]string{"comp", "restype", "peekonly", "PREFIX", "versionid", "include", "sig", "x", ""}).Draw(t, "name")
		return slices.Insert(p, rapid.IntRange(0, len(p)).Draw(t, "at"), name+"=")
	},
	"a copy": func(t *rapid.T, p []string) []string { return append(p, p[one(t, p)]) },
	"cut at a comma": func(t *rapid.T, p []string) []string {
		i := one(t, p)
		name, value, _ := strings.Cut(p[i], "=")
		first, second, cut := strings.Cut(value, ",")
		if !cut {
			return p
		}
		return append(slices.Replace(slices.Clone(p), i, i+1, name+"="+first), name+"="+second)
	},
	"joined": func(_ *rapid.T, p []string) []string {
		var lists []string
		rest := slices.DeleteFunc(slices.Clone(p), func(s string) bool {
			value, is := strings.CutPrefix(s, "include=")
			if is {
				lists = append(lists, value)
			}
			return is
		})
		slices.Sort(lists)
		return append(rest, "include="+strings.Join(lists, ","))
	},
	"shuffled":  func(t *rapid.T, p []string) []string { return rapid.Permutation(p).Draw(t, "order") },
	"separator": func(_ *rapid.T, p []string) []string { return append(p, "") },
	"upper case": func(t *rapid.T, p []string) []string {
		i := one(t, p)
		name, rest, _ := strings.Cut(p[i], "=")
		p[i] = strings.ToUpper(name) + "=" + rest
		return p
	},
	"encoded": func(t *rapid.T, p []string) []string {
		if i := one(t, p); p[i] != "" && !strings.ContainsAny(p[i], "%+") {
			if at := rapid.IntRange(0, len(p[i])-1).Draw(t, "at"); p[i][at] != '=' {
				p[i] = fmt.Sprintf("%s%%%02x%s", p[i][:at], p[i][at], p[i][at+1:])
			}
		}
		return p
	},
	"plus": func(t *rapid.T, p []string) []string {
		i := one(t, p)
		p[i] = strings.ReplaceAll(p[i], "%20", "+")
		return p
	},
	"empty ones dropped": func(_ *rapid.T, p []string) []string {
		return slices.DeleteFunc(p, func(s string) bool { return !strings.Contains(s, "=") || strings.HasSuffix(s, "=") })
	},
	"bare": func(t *rapid.T, p []string) []string {
		i := one(t, p)
		p[i] = strings.TrimSuffix(p[i], "=")
		return p
	},
}

// ofStrings alter the parameters of a scheme that signs them all: what the string has as two is sent as one.
var ofStrings = map[string]func(t *rapid.T, p []string) []string{
	"line feed": func(_ *rapid.T, p []string) []string {
		sorted := slices.Sorted(slices.Values(p))
		if len(sorted) < 2 {
			return p
		}
		return append(sorted[2:], sorted[0]+"%0A"+strings.Replace(sorted[1], "=", ":", 1))
	},
	"colon": func(t *rapid.T, p []string) []string {
		i := one(t, p)
		name, value, _ := strings.Cut(p[i], "=")
		if first, second, cut := strings.Cut(value, ":"); cut {
			p[i] = name + ":" + first + "=" + second
		}
		return p
	},
	"without": func(t *rapid.T, p []string) []string { i := one(t, p); return slices.Delete(p, i, i+1) },
}

// ofHeader alter the line of a header, whose name ends at a colon.
var ofHeader = map[string]func(t *rapid.T, h string) []string{
	"more space": func(t *rapid.T, h string) []string {
		name, value, _ := strings.Cut(h, ": ")
		return []string{name + ": " + strings.ReplaceAll(value, " ", rapid.SampledFrom([]string{"  ", " \t", "\t", "\t \t", " \u00a0", "\u00a0 "}).Draw(t, "space"))}
	},
	"space around": func(t *rapid.T, h string) []string {
		name, value, _ := strings.Cut(h, ": ")
		spaces := rapid.SampledFrom([]string{"", " ", "\t ", "\u00a0", "\u0085", "\u2003"})
		return []string{name + ":" + spaces.Draw(t, "before") + value + spaces.Draw(t, "after")}
	},
	"folded": func(t *rapid.T, h string) []string {
		name, value, _ := strings.Cut(h, ": ")
		at := spot(t, value)
		return []string{name + ": " + value[:at] + "\r\n " + value[at:]}
	},
	"two lines": func(_ *rapid.T, h string) []string {
		name, value, _ := strings.Cut(h, ": ")
		if first, second, cut := strings.Cut(value, ","); cut {
			return []string{name + ": " + first, name + ": " + second}
		}
		return []string{h, name + ":"}
	},
	"upper case": func(_ *rapid.T, h string) []string {
		name, value, _ := strings.Cut(h, ": ")
		return []string{strings.ToUpper(name) + ": " + value}
	},
	"without": func(_ *rapid.T, h string) []string { return nil },
}

// ofLine alter the rest.
var ofLine = map[string]func(t *rapid.T, l *line){
	"verb": func(t *rapid.T, l *line) {
		if l.service != geo.Table || !l.lite { // There it is not signed.
			l.method = rapid.SampledFrom([]string{strings.ToLower(l.method), "GET", "DELETE"}).Draw(t, "verb")
		}
	},
	"secondary":   func(_ *rapid.T, l *line) { l.uri = strings.Replace(l.uri, "/acct", "/acct-secondary", 1) },
	"raw quotes":  func(_ *rapid.T, l *line) { l.uri = strings.ReplaceAll(l.uri, "%27", "'") },
	"quotes":      func(_ *rapid.T, l *line) { l.uri = strings.ReplaceAll(l.uri, "'", "%27") },
	"absolute":    func(_ *rapid.T, l *line) { l.uri = "http://127.0.0.1" + l.uri },
	"other date":  func(_ *rapid.T, l *line) { l.headers = append(l.headers, "Date: Wed, 23 Oct 2013 22:05:54 GMT") },
	"headers":     func(t *rapid.T, l *line) { l.headers = rapid.Permutation(l.headers).Draw(t, "order") },
	"length":      func(_ *rapid.T, l *line) { l.headers = append(l.headers, "Content-Length: 0") },
	"empty meta":  func(_ *rapid.T, l *line) { l.headers = append(l.headers, "x-ms-meta-a:") },
	"other names": func(_ *rapid.T, l *line) { l.headers = append(l.headers, "x-ms-: x", "x-http-method-override: DELETE") },
}

// alter changes the request in one way, and returns its name.
func (l *line) alter(t *rapid.T) (how string) {
	params := maps.Clone(ofParams)
	if !l.lite && l.service != geo.Table {
		maps.Copy(params, ofStrings)
	}
	pick := func(names []string) string { slices.Sort(names); return rapid.SampledFrom(names).Draw(t, "how") }
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case kind < 2 && len(l.params) > 0:
		how = pick(slices.Collect(maps.Keys(params)))
		l.params = params[how](t, slices.Clone(l.params))
	case kind < 4:
		how = pick(slices.Collect(maps.Keys(ofHeader)))
		i := rapid.IntRange(1, len(l.headers)-1).Draw(t, "header") // Not the host.
		if name, _, _ := strings.Cut(l.headers[i], ":"); name != "Authorization" {
			l.headers = slices.Replace(slices.Clone(l.headers), i, i+1, ofHeader[how](t, l.headers[i])...)
		}
	default:
		how = pick(slices.Collect(maps.Keys(ofLine)))
		l.headers = slices.Clone(l.headers)
		ofLine[how](t, l)
	}
	return how
}

// The operation and every operand follow from exactly what was signed (protocol/auth.md 12): a signed request for any row
// of the table of operations that is altered in any way asks for the same with the same operands, or is refused. Of the
// schemes that sign less, what they sign is compared.
func TestAlteredRequestAsksForTheSame(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	key := []byte("0123456789abcdef0123456789abcdef")
	s := NewServer(Options{Clock: clock.NewManual(now), Zones: []geo.Zone{geo.LocalZone}})
	same, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		signed := anyLine(t, key, now)
		want, err := signed.asks(s, key)
		require.NoError(t, err)
		for range 8 {
			sent, how := *signed, []string{}
			for range rapid.IntRange(1, 3).Draw(t, "alterations") {
				how = append(how, sent.alter(t))
			}
			got, err := sent.asks(s, key)
			if err != nil {
				refused++
				continue
			}
			same++
			require.Equal(t, want, got, "%s by %v\nsent as %s", signed, how, &sent)
		}
	})
	require.Positive(t, same)
	require.Positive(t, refused)
}

// The bound of what a signature covers of the style (protocol/auth.md 9): a request for a resource in path style is one
// in host style only for what is called like the account itself, under the same name.
func TestContainerNamedAsItsAccount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	key := []byte("0123456789abcdef0123456789abcdef")
	s := NewServer(Options{Clock: clock.NewManual(now), Zones: []geo.Zone{geo.LocalZone}})
	l := &line{service: geo.Blob, method: "GET", uri: "/acct/c/b", headers: []string{"Host: 127.0.0.1", "x-ms-version: 2021-12-02"}}
	r, err := l.request()
	require.NoError(t, err)
	require.NoError(t, auth.Sign(r, geo.Blob, "acct", key, now))
	l.headers = append(l.headers, "x-ms-date: "+r.Header.Get("x-ms-date"), "Authorization: "+r.Header.Get("Authorization"))
	for host, want := range map[string]string{"127.0.0.1": "c/b", "localhost:10000": "c/b", "acct.blob.localhost": "acct/c/b", "acct-secondary.blob.localhost": "acct/c/b"} {
		l.headers[0] = "Host: " + host
		got, err := l.asks(s, key)
		require.NoError(t, err, host)
		require.Equal(t, want, got["container"]+"/"+got["blob"], host)
	}
	for _, host := range []string{"other.blob.localhost", "acct.queue.localhost", "other.example"} {
		l.headers[0] = "Host: " + host
		got, err := l.asks(s, key)
		require.True(t, err != nil || got["operation"] == operation.Unknown, host)
	}
}
