package dev

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
)

// A sender that stops in the middle of a body is answered when its request's time is
// over, through the gateway as well, and changed nothing; the connection is closed.
// It holds invariant 8.
//
// Capability: Clients: Bounded memory of uploads.
func TestStalledSenders(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	for _, gateway := range []Ports{c.gateway, c.ports[North]} {
		for method, target := range map[string]string{
			http.MethodPut:  entityPath("northacct", "", "k"),
			http.MethodPost: "/northacct/$batch",
		} {
			conn, err := net.Dial("tcp", gateway.Of(geo.Table))
			require.NoError(t, err)
			contentType := "application/json"
			if method == http.MethodPost {
				contentType = "multipart/mixed; boundary=b"
			}
			r, err := http.NewRequest(method, "http://"+gateway.Of(geo.Table)+target+"?timeout=1", strings.NewReader(strings.Repeat("x", 1000)))
			require.NoError(t, err)
			r.Header.Set("x-ms-version", "2019-02-02")
			r.Header.Set("Content-Type", contentType)
			require.NoError(t, auth.SignSharedKeyLite(r, geo.Table, "northacct", key64, time.Now()))
			_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n", method, r.URL.RequestURI(), r.Host)
			require.NoError(t, err)
			require.NoError(t, r.Header.Write(conn))
			_, err = io.WriteString(conn, "\r\n--b\r\n{") // And no more.
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), r)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "500 OperationTimedOut", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("x-ms-error-code")), "%s: %s", target, body)
			require.True(t, resp.Close)
			require.NoError(t, resp.Body.Close())
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, conn.Close())
		}
	}
	require.Equal(t, "kept", read(t, c, "northacct", "", "k"))
}
