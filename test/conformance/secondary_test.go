package conformance

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
)

// Cases 83 to 86: the secondary, and connections.
func secondaryCases() []testCase {
	return []testCase{
		{83, "stats", stats},
		{84, "writes at the secondary", writesAtSecondary},
		{85, "Expect: 100-continue", expectContinue},
		{86, "reset connection", resetConnection},
	}
}

// at sends a request to the secondary.
func (r *rig) at(method, path, body string, fields ...string) *answer {
	r.Helper()
	q := r.request(method, "", body, fields...)
	q.target = "/" + r.account + geo.SecondarySuffix + path
	return r.send(q)
}

func stats(r *rig) {
	const path = "/?restype=service&comp=stats"
	const pattern = `^(\x{FEFF})?<\?xml version="1\.0" encoding="utf-8"\?><StorageServiceStats><GeoReplication><Status>live</Status>` +
		`<LastSyncTime>(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)</LastSyncTime></GeoReplication></StorageServiceStats>$`
	r.until("the statistics are live", func() (bool, error) {
		a := r.at("GET", path, "").is(http.StatusOK)
		if strings.Contains(a.body, "<Status>live</Status>") {
			require.Regexp(r, pattern, a.body)
			return true, nil
		}
		return false, fmt.Errorf("%s", a.body)
	})
	r.do("GET", path, "").fails(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

func writesAtSecondary(r *rig) {
	r.create()
	tag := r.added("p", "r", `,"v":1`).tag()
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":1`) // It has arrived.
	for _, c := range []struct{ method, path, body, match string }{
		{"POST", "/" + r.table, entity("p", "new", ""), ""},
		{"PUT", r.path("p", "r"), `{"v":2}`, ""},
		{"PUT", r.path("p", "r"), `{"v":2}`, "*"},
		{"MERGE", r.path("p", "new"), `{"v":2}`, ""},
		{"PATCH", r.path("p", "r"), `{"v":2}`, tag},
		{"DELETE", r.path("p", "r"), "", "*"},
		{"POST", "/Tables", `{"TableName":"More84"}`, ""},
		{"DELETE", "/Tables('" + r.table + "')", "", ""},
		{"PUT", "/" + r.table + "?comp=acl", "", ""},
	} {
		r.at(c.method, c.path, c.body, "If-Match", c.match).
			fails(http.StatusForbidden, "InsufficientAccountPermissions", "Write operations are not allowed.")
	}
	var set changeSet
	set.insert(r, "p", "new", "")
	multipart := []string{"Content-Type", "multipart/mixed; boundary=batch"}
	r.at("POST", "/$batch", set.body(), multipart...).fails(http.StatusForbidden, "InsufficientAccountPermissions", "Write operations are not allowed.")

	a := r.at("GET", r.path("p", "r"), "").is(http.StatusOK)
	require.Equal(r, tag, a.tag())
	require.Equal(r, r.secondaryBase()+"$metadata#"+r.table+"/@Element", a.decoded()["odata.metadata"])
	a = r.at("POST", "/$batch", query(r.secondaryBase()+r.path("p", "r")[1:]), multipart...)
	parts := a.parts()
	require.Len(r, parts, 1)
	require.Equal(r, "200 OK", parts[0].status)
	require.Equal(r, tag, parts[0].field("ETag"))
	r.at("GET", r.path("p", "none"), "").fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	require.Equal(r, []string{"p/r"}, r.read("/"+r.table).keys())
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":1`)
}

// dial opens a connection to the gateway.
func (r *rig) dial() net.Conn {
	r.Helper()
	c, err := net.Dial("tcp", r.suite.host)
	require.NoError(r, err)
	r.Cleanup(func() { _ = c.Close() }) // Some cases have closed it.
	require.NoError(r, c.SetDeadline(clock.System{}.Now().Add(waitMax)))
	return c
}

// head is a request up to its body, as it stands on the wire.
func (q *request) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", q.method, q.target, q.host, len(q.body))
	for _, name := range sorted(q.header) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, q.header.Get(name))
	}
	return b.String() + "\r\n"
}

func expectContinue(r *rig) {
	r.create()
	ask := func(q *request) (first *http.Response, in *bufio.Reader, c net.Conn) {
		c = r.dial()
		_, err := c.Write([]byte(q.head())) // And no body.
		require.NoError(r, err)
		in = bufio.NewReader(c)
		first, err = http.ReadResponse(in, nil)
		require.NoError(r, err)
		return first, in, c
	}
	// What is wrong with the request line and the headers is answered without the body (section 8.2).
	for _, c := range []struct {
		method, path, version, code string
		status                      int
		signed                      string
	}{
		{"POST", "/" + r.table, latest, "AuthenticationFailed", http.StatusForbidden, "x"},
		{"PUT", r.path("p", "r"), latest, "AuthenticationFailed", http.StatusForbidden, "x"},
		{"POST", "/" + r.table, "2019-02-03", "InvalidHeaderValue", http.StatusBadRequest, ""},
		{"PUT", "/Tables('" + r.table + "')", latest, "MethodNotAllowed", http.StatusMethodNotAllowed, ""},
		{"POST", geo.SecondarySuffix + "/" + r.table, latest, "InsufficientAccountPermissions", http.StatusForbidden, ""},
	} {
		q := r.request(c.method, "", entity("p", "r", ""), "Expect", "100-continue", "X-Ms-Version", c.version)
		q.target += c.path
		r.signAs(q, sharedKey, q.target+c.signed)
		first, _, _ := ask(q)
		require.Equal(r, c.status, first.StatusCode, "and not 100")
		require.Equal(r, c.code, first.Header.Get("X-Ms-Error-Code"))
		require.NoError(r, first.Body.Close())
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{{"POST", "/" + r.table, http.StatusCreated}, {"PUT", r.path("p", "r"), http.StatusNoContent}} {
		q := r.request(c.method, c.path, entity("p", "r", ""), "Expect", "100-continue")
		r.signAs(q, sharedKey, q.target)
		first, in, conn := ask(q)
		require.Equal(r, http.StatusContinue, first.StatusCode)
		_, err := conn.Write([]byte(q.body))
		require.NoError(r, err)
		last, err := http.ReadResponse(in, nil)
		require.NoError(r, err)
		require.Equal(r, c.status, last.StatusCode)
		require.NoError(r, last.Body.Close())
	}
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", "")
}

func resetConnection(r *rig) {
	r.create()
	properties := numbered(200)
	var want []string
	for i := range 12 {
		rk := fmt.Sprintf("%02d", i)
		want = append(want, "p/"+rk)
		q := r.sign(r.request("POST", "/"+r.table, entity("p", rk, properties)))
		sent := q.head() + q.body
		whole := i%3 == 0
		if !whole {
			sent = sent[:len(sent)-len(q.body)*(i%3)/3]
		}
		c := r.dial()
		_, err := c.Write([]byte(sent))
		require.NoError(r, err)
		require.NoError(r, c.(*net.TCPConn).SetLinger(0))
		require.NoError(r, c.Close())

		a := r.insert("p", rk, properties)
		if whole && a.status == http.StatusConflict {
			a.fails(http.StatusConflict, "EntityAlreadyExists", entityExists)
		} else {
			a.is(http.StatusCreated)
		}
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, properties)
	}
	require.Equal(r, want, r.read("/"+r.table).keys())
}
