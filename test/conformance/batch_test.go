package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// operation is one request of a batch.
type operation struct {
	method, uri, body string
	fields            []string // lines of headers
}

// changeSet is one change set of a batch.
type changeSet struct {
	operations []operation
}

// add adds an operation on the entity at a path, or on the table.
func (c *changeSet) add(r *rig, method, path, body string, fields ...string) {
	lines := []string{fmt.Sprint("Content-ID: ", len(c.operations)+1)}
	if body != "" {
		lines = append(lines, "Content-Type: application/json", fmt.Sprint("Content-Length: ", len(body)))
	}
	c.operations = append(c.operations, operation{method, strings.TrimSuffix(r.base(), "/") + path, body, append(lines, fields...)})
}

// insert adds an insert that is not echoed.
func (c *changeSet) insert(r *rig, pk, rk, others string) {
	c.add(r, "POST", "/"+r.table, entity(pk, rk, others), "Prefer: return-no-content")
}

// print is the change set as a part of a batch.
func (c *changeSet) print(boundary string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--batch\r\nContent-Type: multipart/mixed; boundary=%s\r\n\r\n", boundary)
	for _, o := range c.operations {
		fmt.Fprintf(&b, "--%s\r\n%s", boundary, o.print())
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return b.String()
}

func (o operation) print() string {
	head := append([]string{o.method + " " + o.uri + " HTTP/1.1"}, o.fields...)
	return "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + strings.Join(head, "\r\n") + "\r\n\r\n" + o.body + "\r\n"
}

// body is a batch of this change set.
func (c *changeSet) body() string { return c.print("changeset") + "--batch--\r\n" }

// batch sends a body as a batch.
func (r *rig) batch(body string, fields ...string) *answer {
	r.Helper()
	return r.do("POST", "/$batch", body, append([]string{"Content-Type", "multipart/mixed; boundary=batch"}, fields...)...)
}

// query is a batch of one GET.
func query(uri string) string {
	return "--batch\r\n" + operation{method: "GET", uri: uri, fields: []string{"Accept: application/json"}}.print() + "--batch--\r\n"
}

// succeeds sends the change set, each of whose operations must be answered 204.
func (c *changeSet) succeeds(r *rig) []part {
	r.Helper()
	parts := r.batch(c.body()).set()
	require.Len(r, parts, len(c.operations))
	for i, p := range parts {
		require.Equal(r, "204 No Content", p.status, p)
		require.Equal(r, fmt.Sprint("Content-ID: ", i+1), p.fields[0])
	}
	return parts
}

// fails sends the change set, which must be answered by one error of its operation with this index.
func (c *changeSet) fails(r *rig, status int, code string, index int, message string) {
	r.Helper()
	a := r.batch(c.body())
	parts := a.set()
	require.Len(r, parts, 1)
	parts[0].fails(a, status, code, fmt.Sprintf("%d:%s", index, message))
	require.Equal(r, fmt.Sprint("Content-ID: ", index+1), parts[0].fields[0])
}

// part is one answer of a batch.
type part struct {
	status string   // with its text
	fields []string // lines of headers, in their order
	body   string
	set    int // of which change set, from 1; 0: of none
}

// fails requires a part to be an error in JSON (protocol/table.md 13.5).
func (p part) fails(a *answer, status int, code, message string) {
	a.rig.Helper()
	require.Equal(a.rig, fmt.Sprint(status, " ", http.StatusText(status)), p.status, p.body)
	fields := strings.Join(p.fields, "\n")
	require.Regexp(a.rig, `^(Content-ID: \d+\n)?X-Content-Type-Options: nosniff\n(Cache-Control: no-cache\n)?(Preference-Applied: [a-z-]+\n)?`+
		`DataServiceVersion: 3\.0;\nContent-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8$`, fields)
	requireError(a.rig, jsonForm, p.body, a.header.Get("X-Ms-Request-Id"), code, message)
}

// field is a header of the part; empty if it has none. Its name must be spelled so.
func (p part) field(name string) string {
	for _, line := range p.fields {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return value
		}
	}
	return ""
}

// set requires an answer to a batch that has one change set, and returns its parts.
func (a *answer) set() []part {
	a.rig.Helper()
	parts := a.parts()
	for _, p := range parts {
		require.Equal(a.rig, 1, p.set, a.message())
	}
	return parts
}

// parts takes an answer to a batch apart, byte for byte: there are no other bytes than those of
// protocol/table.md 13.5.
func (a *answer) parts() (parts []part) {
	a.rig.Helper()
	require.Equal(a.rig, http.StatusAccepted, a.status, a.message())
	require.Regexp(a.rig, "^multipart/mixed; boundary=batchresponse_"+guidPattern+"$", a.header.Get("Content-Type"))
	require.NotContains(a.rig, strings.ReplaceAll(a.body, "\r\n", ""), "\n", "not CRLF only")
	require.NotContains(a.rig, strings.ReplaceAll(a.body, "\r\n", ""), "\r", "not CRLF only")
	_, outer, _ := strings.Cut(a.header.Get("Content-Type"), "boundary=")
	in := &cutter{a.rig, a.body}
	for set := 0; in.rest != "--"+outer+"--\r\n"; {
		in.take("--" + outer + "\r\n")
		if strings.HasPrefix(in.rest, "Content-Type: application/http") {
			parts = append(parts, in.part(0, outer))
			continue
		}
		set++
		inner := in.take("Content-Type: multipart/mixed; boundary=(changesetresponse_" + guidPattern + ")\r\n\r\n")
		for !strings.HasPrefix(in.rest, "--"+inner+"--\r\n") {
			in.take("--" + inner + "\r\n")
			parts = append(parts, in.part(set, inner))
		}
		in.take("--" + inner + "--\r\n")
	}
	require.NotEmpty(a.rig, parts)
	return parts
}

// cutter takes a text apart, from its first byte on.
type cutter struct {
	rig  *rig
	rest string
}

// take takes what a pattern matches, and returns its last group.
func (c *cutter) take(pattern string) string {
	c.rig.Helper()
	found := regexp.MustCompile("^" + pattern).FindStringSubmatch(c.rest)
	require.NotNil(c.rig, found, "%q does not go on with %q", c.rest, pattern)
	c.rest = c.rest[len(found[0]):]
	return found[len(found)-1]
}

// part takes one answer, up to the next delimiter.
func (c *cutter) part(set int, boundary string) part {
	c.rig.Helper()
	c.take("Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n")
	p := part{set: set, status: c.take(`HTTP/1\.1 (\d\d\d [A-Za-z ]+)` + "\r\n")}
	p.fields = strings.Split(c.take("([^\r\n]+(?:\r\n[^\r\n]+)*)\r\n\r\n"), "\r\n")
	var closed bool
	p.body, _, closed = strings.Cut(c.rest, "\r\n--"+boundary)
	require.True(c.rig, closed, c.rest)
	c.rest = c.rest[len(p.body)+len("\r\n"):]
	return p
}
