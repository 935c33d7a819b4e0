package listen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Above its bound a listener closes the connection that has waited longest for a request,
// whether it never sent one or was answered. A connection with a running request is not closed.
// If all have one, a new connection gets a 503.
func TestConnectionsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	c := newConns(3)
	s := httptest.NewUnstartedServer(c.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/work" {
			entered <- struct{}{}
			<-leave
		}
	})))
	s.Config.ConnState, s.Config.ConnContext = c.state, c.context
	s.Start()
	defer s.Close()
	var last net.Conn
	dial := func() *bufio.ReadWriter {
		n, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		require.NoError(t, n.SetDeadline(time.Now().Add(time.Minute)))
		last = n
		return bufio.NewReadWriter(bufio.NewReader(n), bufio.NewWriterSize(n, 1))
	}
	send := func(n *bufio.ReadWriter, path string) {
		_, err := io.WriteString(n, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		require.NoError(t, n.Flush())
	}
	status := func(n *bufio.ReadWriter) int {
		resp, err := http.ReadResponse(n.Reader, nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	closed := func(n *bufio.ReadWriter) {
		_, err := n.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	}
	// waits until the connection that waited shortest is the one at addr, of n that wait.
	waits := func(n int, addr string) {
		require.Eventually(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.waiting.Len() == n && c.waiting.Back().Value.(*conn).RemoteAddr().String() == addr
		}, time.Minute, time.Millisecond)
	}
	working := dial()
	send(working, "/work")
	<-entered
	answered := dial()
	addr := last.LocalAddr().String()
	waits(1, addr)
	silent := dial()
	waits(2, last.LocalAddr().String())
	send(answered, "/") // Now the silent one has waited longer.
	require.Equal(t, http.StatusOK, status(answered))
	waits(2, addr)
	second := dial()
	send(second, "/work")
	<-entered
	closed(silent)
	third := dial()
	send(third, "/work")
	<-entered
	closed(answered)
	beyond := dial()
	require.Equal(t, http.StatusServiceUnavailable, status(beyond))
	closed(beyond)
	for range 3 {
		leave <- struct{}{}
	}
	for _, n := range []*bufio.ReadWriter{working, second, third} {
		require.Equal(t, http.StatusOK, status(n))
	}
	send(dial(), "/") // A place again: the three wait now.
}

// A listener leaves file descriptors to the rest of the process.
func TestConnsMax(t *testing.T) {
	require.GreaterOrEqual(t, ConnsMax(), connsMin)
	require.LessOrEqual(t, ConnsMax(), connsMax)
}
