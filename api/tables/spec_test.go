package tables

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
)

// shorthand are the words of testdata/answers.txt for several headers.
var shorthand = map[string]string{
	"empty": "Cache-Control=no-cache X-Content-Type-Options=nosniff",
	"doc":   "Cache-Control=no-cache X-Content-Type-Options=nosniff Content-Length Content-Type=json",
	"error": "Cache-Control=no-cache X-Content-Type-Options=nosniff Content-Length Content-Type=json x-ms-error-code",
	"early": "X-Content-Type-Options=nosniff Content-Length Content-Type=json x-ms-error-code",
}

// builtOperations are those that testdata/answers.txt must have lines of.
func builtOperations() []string {
	return []string{
		"CreateTable", "DeleteEntity", "DeleteTable", "EntityGroupTransaction", "InsertEntity", "MergeEntity",
		"QueryEntities", "QueryEntity", "QueryTable", "QueryTables", "UpdateEntity",
	}
}

// Every operation answers with the status, the code and the headers of the specification's
// tables, none missing and none besides.
func TestAnswersOfTheSpecification(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text, err := os.ReadFile("testdata/answers.txt")
	require.NoError(t, err)
	seen, tag := map[string]bool{"Unknown": true}, ""
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "|")
		require.Len(t, columns, 6, line)
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		a := r.sendLine(columns[2], strings.ReplaceAll(columns[3], "{tag}", tag))
		status, code, _ := strings.Cut(columns[4], " ")
		require.Equal(t, status, strconv.Itoa(a.status), "%s\n%s", line, a.body)
		require.Equal(t, code, a.header.Get("x-ms-error-code"), line)
		require.Equal(t, columns[1], operationOf(t, a.request), line)
		requireHeaders(t, a.header, columns[5], line)
		seen[columns[1]] = true
		if a.header.Get("ETag") != "" {
			tag = a.header.Get("ETag")
		}
	}
	delete(seen, "Unknown")
	require.Equal(t, builtOperations(), slices.Sorted(maps.Keys(seen)))
}

// operationOf is how the handler names what a request asks for.
func operationOf(t *testing.T, sent *http.Request) string {
	t.Helper()
	hr := httptest.NewRequest(sent.Method, sent.URL.RequestURI(), nil)
	hr.Host, hr.Header = sent.URL.Host, sent.Header
	req := &protocol.Request{HTTP: hr}
	var err error
	req.Target, err = protocol.ParseTarget(geo.Table, "http", hr.Host, hr.RequestURI)
	require.NoError(t, err)
	req.Query, err = protocol.ParseQuery(req.RawQuery)
	require.NoError(t, err)
	return Lookup(req).Name
}

// sendLine sends a request as testdata/answers.txt writes it.
func (r *rig) sendLine(request, headers string) received {
	r.t.Helper()
	var pairs []string
	if name, value, ok := strings.Cut(headers, ": "); ok {
		pairs = []string{name, value}
	}
	if request == "BATCH" {
		return r.batch(set(insert("p", "batch", "x")) + end)
	}
	method, target, _ := strings.Cut(request, " ")
	target, body, has := strings.Cut(target, " {")
	if has {
		body = "{" + body
	}
	return r.do(method, "/acct/"+target, body, pairs...)
}

// requireHeaders requires an answer to have the headers of want and those of section 3.
func requireHeaders(t *testing.T, got http.Header, want, line string) {
	t.Helper()
	for word, of := range shorthand {
		if rest, ok := strings.CutPrefix(want, word); ok && (rest == "" || rest[0] == ' ') {
			want = of + rest
			break
		}
	}
	names := []string{"Date", "Server", "X-Ms-Request-Id", "X-Ms-Version"}
	for _, header := range strings.Fields(want) {
		name, value, fixed := strings.Cut(header, "=")
		name = http.CanonicalHeaderKey(name)
		names = append(names, name)
		if value == "json" {
			value = "application/json;odata=nometadata;streaming=true;charset=utf-8"
			if strings.HasPrefix(got.Get(name), "application/json;odata=minimalmetadata") {
				value = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8" // Nothing was negotiated.
			}
		}
		require.NotEmpty(t, got.Get(name), "%s: %s", line, name)
		if fixed {
			require.True(t, strings.HasPrefix(got.Get(name), value), "%s: %s is %q", line, name, got.Get(name))
		}
	}
	slices.Sort(names)
	require.Equal(t, names, slices.Sorted(maps.Keys(got)), line)
}
