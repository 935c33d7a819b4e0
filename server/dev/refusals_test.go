package dev

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
)

// What is wrong with a table request before the table service sees it, at both
// endpoints of the account: version, date, signature, timeout, statistics at the wrong
// endpoint. Each gets the protocol's status and code, and the entity is as it was
// (protocol/table.md 2.1, 3, 14.1, A.74, A.78, A.83; invariant 7).
func TestTableRequestsRefused(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	eventually(t, "the value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "kept" })
	heads, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	batch := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nDELETE /northacct/tbl(PartitionKey='k',RowKey='r')\r\n\r\n--c--\r\n"
	for name, tc := range map[string]struct {
		query  string
		age    time.Duration
		change func(*http.Request)
		want   string
	}{
		"unlisted version":    {change: func(r *http.Request) { r.Header.Set("x-ms-version", "2008-99-99") }, want: "400 InvalidHeaderValue"},
		"version between two": {change: func(r *http.Request) { r.Header.Set("x-ms-version", "2019-02-03") }, want: "400 InvalidHeaderValue"},
		"version of words":    {change: func(r *http.Request) { r.Header.Set("x-ms-version", "latest") }, want: "400 InvalidHeaderValue"},
		"16 minutes old":      {age: 16 * time.Minute, want: "403 AuthenticationFailed"},
		"16 minutes ahead":    {age: -16 * time.Minute, want: "403 AuthenticationFailed"},
		"no date":             {change: func(r *http.Request) { r.Header.Del("x-ms-date") }, want: "403 AuthenticationFailed"},
		"no credentials":      {change: func(r *http.Request) { r.Header.Del("Authorization") }, want: "403 AuthenticationFailed"},
		"another key":         {change: func(r *http.Request) { r.Header.Set("Authorization", "SharedKeyLite northacct:AAAA") }, want: "403 AuthenticationFailed"},
		"no scheme":           {change: func(r *http.Request) { r.Header.Set("Authorization", "northacct") }, want: "400 InvalidAuthenticationInfo"},
		"timeout of none":     {query: "?timeout=0", want: "400 InvalidQueryParameterValue"},
		"timeout is text":     {query: "?timeout=soon", want: "400 InvalidQueryParameterValue"},
	} {
		for _, suffix := range []string{"", "-secondary"} {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
				if suffix != "" && method != http.MethodGet && tc.query != "" {
					continue // A write there is refused before its timeout is read.
				}
				target, body, contentType := entityPath("northacct", suffix, "k"), "", ""
				switch method {
				case http.MethodPut:
					body, contentType = `{"v":"changed"}`, "application/json"
				case http.MethodPost:
					target, body, contentType = "/northacct"+suffix+"/$batch", batch, "multipart/mixed; boundary=b"
				}
				r, err := http.NewRequest(method, "http://"+c.gateway.Of(geo.Table)+target+tc.query, strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("x-ms-version", "2019-02-02")
				r.Header.Set("Content-Type", contentType)
				require.NoError(t, auth.SignSharedKeyLite(r, geo.Table, "northacct", key64, time.Now().Add(-tc.age)))
				if tc.change != nil {
					tc.change(r)
				}
				resp, err := http.DefaultTransport.RoundTrip(r)
				require.NoError(t, err)
				b, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("x-ms-error-code"))
				require.Equal(t, tc.want, got, "%s: %s %s: %s", name, method, target, b)
			}
		}
	}
	a := call(t, c.gateway, "northacct", http.MethodGet, "/northacct/?restype=service&comp=stats", "")
	require.Equal(t, "400 InvalidQueryParameterValue", fmt.Sprint(a.status, " ", a.header.Get("x-ms-error-code")))
	require.Equal(t, "kept", read(t, c, "northacct", "", "k"))
	require.Equal(t, "kept", read(t, c, "northacct", "-secondary", "k"))
	for _, l := range order() { // Nothing else in the process is a client of the locations' ports.
		require.Empty(t, connectionsTo(t, c.ports[l].Of(geo.Table)), "a gateway calls the locations of its process")
	}
	after, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	require.Equal(t, heads, after, "no stream moved")
}

// connectionsTo lists the open connections of this machine to a port of it, as the client has them. One that was closed, perhaps
// by a test that had the port before, waits in the table for a while.
func connectionsTo(t *testing.T, addr string) (found []string) {
	t.Helper()
	at := netip.MustParseAddrPort(addr)
	ip := at.Addr().As4()
	remote := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), at.Port())
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	for _, line := range strings.Split(string(table), "\n")[1:] {
		const established = "01"
		if fields := strings.Fields(line); len(fields) > 3 && fields[2] == remote && fields[3] == established {
			found = append(found, line)
		}
	}
	return found
}
