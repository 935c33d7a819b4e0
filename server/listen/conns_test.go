package listen

import (
	"bufio"
	"container/list"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/internal/clock"
)

// bounded is a server with a bound of its connections. Its handler refuses what has a body, and works on /work until leave.
type bounded struct {
	*conns
	clock          *clock.Manual
	server         *httptest.Server
	entered, leave chan struct{}
}

func newBounded(t *testing.T, limit int) *bounded {
	t.Helper()
	manual := clock.NewManual(time.Unix(0, 0))
	b := &bounded{conns: newConns(limit, manual), clock: manual, entered: make(chan struct{}), leave: make(chan struct{})}
	b.server = httptest.NewUnstartedServer(b.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/work":
			b.entered <- struct{}{}
			<-b.leave
		case protocol.WatchSender(w, r):
			w.Header().Set("Content-Length", "0")
			protocol.BeforeAnswer(w, r)
			w.WriteHeader(http.StatusForbidden)
			protocol.Linger(w, r)
			<-b.leave // However slow the test is.
		}
	})))
	b.server.Config.ConnState, b.server.Config.ConnContext = b.state, b.context
	b.server.Start()
	t.Cleanup(b.server.Close)
	return b
}

// client is one connection to a bounded server.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (b *bounded) dial(t *testing.T) client {
	t.Helper()
	n, err := net.Dial("tcp", b.server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	require.NoError(t, n.SetDeadline(time.Now().Add(time.Minute)))
	return client{n, t, bufio.NewReader(n)}
}

func (c client) send(path string, headers ...string) {
	c.t.Helper()
	_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+strings.Join(headers, "")+"\r\n")
	require.NoError(c.t, err)
}

func (c client) status() int {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	require.NoError(c.t, err)
	require.NoError(c.t, resp.Body.Close())
	return resp.StatusCode
}

func (c client) closed() {
	c.t.Helper()
	_, err := c.r.ReadByte()
	require.ErrorIs(c.t, err, io.EOF)
}

// await waits until n connections have no running request, and the last that began to wait is that of a client.
func (b *bounded) await(n int, last client) {
	last.t.Helper()
	is := func(in *list.List) bool {
		return in.Len() > 0 && in.Back().Value.(*conn).RemoteAddr().String() == last.LocalAddr().String()
	}
	require.Eventually(last.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.silent.Len()+b.served.Len() == n && (is(&b.silent) || is(&b.served))
	}, time.Minute, time.Millisecond)
}

// Above its bound a listener closes the connection that has waited longest for a request,
// whether it never sent one or was answered. A connection with a running request is not closed.
// If all have one, a new connection gets a 503.
// It holds invariant 8.
func TestConnectionsAreBounded(t *testing.T) {
	b := newBounded(t, 3)
	work := func() client {
		c := b.dial(t)
		c.send("/work")
		<-b.entered
		return c
	}
	working := work()
	answered := b.dial(t)
	b.await(1, answered)
	silent := b.dial(t)
	b.await(2, silent)
	answered.send("/") // Now the silent one has waited longer.
	require.Equal(t, http.StatusOK, answered.status())
	b.await(2, answered)
	b.clock.Advance(servedKept)
	second := work()
	silent.closed()
	third := work()
	answered.closed()
	beyond := b.dial(t)
	require.Equal(t, http.StatusServiceUnavailable, beyond.status())
	beyond.closed()
	for range 3 {
		b.leave <- struct{}{}
	}
	for _, c := range []client{working, second, third} {
		require.Equal(t, http.StatusOK, c.status())
	}
	b.dial(t).send("/") // A place again: the three wait now.
}

// A connection whose request was refused, and whose client still sends, is closed before one that waits for a request. Its
// client has the refusal.
func TestLingeringConnectionsAreClosedFirst(t *testing.T) {
	b := newBounded(t, 2)
	waiting := b.dial(t)
	b.await(1, waiting)
	refused := b.dial(t)
	refused.send("/", "Content-Length: 5\r\n")
	require.Equal(t, http.StatusForbidden, refused.status())
	b.await(2, waiting)
	next := b.dial(t)
	refused.closed()
	b.leave <- struct{}{}
	for _, c := range []client{next, waiting} {
		c.send("/")
		require.Equal(t, http.StatusOK, c.status())
	}
	b.await(2, waiting)
	b.clock.Advance(servedKept) // All that waits has waited for longer than what comes now.
	refused = b.dial(t)
	next.closed()
	refused.send("/", "Content-Length: 5\r\n")
	require.Equal(t, http.StatusForbidden, refused.status())
	b.await(2, waiting)
	last := b.dial(t)
	refused.closed()
	b.leave <- struct{}{}
	last.send("/", "Content-Length: 5\r\n")
	require.Equal(t, http.StatusForbidden, last.status())
	b.leave <- struct{}{}
	last.closed()
	b.await(1, waiting)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(t, b.open, 1)
}

// A request whose connection was closed for another before its handler began is not begun: its client would get no answer.
func TestRequestOnAClosedConnectionIsNotBegun(t *testing.T) {
	s := newConns(1, clock.NewManual(time.Unix(0, 0)))
	one, other := net.Pipe()
	defer func() { require.NoError(t, one.Close()); require.NoError(t, other.Close()) }()
	s.state(one, http.StateNew)
	begun := 0
	h := s.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun++ }))
	serve := func() {
		r := httptest.NewRequest(http.MethodPut, "/", http.NoBody)
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(s.context(r.Context(), one)))
	}
	serve()
	require.Equal(t, 1, begun)
	s.state(other, http.StateNew)
	require.PanicsWithValue(t, http.ErrAbortHandler, serve)
	require.Equal(t, 1, begun)
}

// A connection that had a request a moment ago outlives those that had none: its client may be sending the next one. It is
// closed in its turn once it has waited for servedKept.
func TestServedConnectionsAreKept(t *testing.T) {
	b := newBounded(t, 4)
	served := b.dial(t)
	served.send("/")
	require.Equal(t, http.StatusOK, served.status())
	b.await(1, served)
	b.clock.Advance(servedKept - 1)
	var silent [5]client
	for i := range silent {
		silent[i] = b.dial(t)
		b.await(min(2+i, 4), silent[i])
	}
	silent[0].closed()
	silent[1].closed()
	b.clock.Advance(1)
	last := b.dial(t)
	served.closed()
	for _, c := range append(silent[2:], last) {
		c.send("/")
		require.Equal(t, http.StatusOK, c.status())
	}
}

// Connections that are all used, again and again, leave a part to new ones, so that their clients come to send a request.
func TestUsedConnectionsLeaveSomeToNewOnes(t *testing.T) {
	b := newBounded(t, 4)
	var used [4]client
	for i := range used {
		used[i] = b.dial(t)
		used[i].send("/")
		require.Equal(t, http.StatusOK, used[i].status())
		b.await(i+1, used[i])
	}
	b.clock.Advance(1)
	first := b.dial(t)
	used[0].closed()
	b.await(4, first)
	second := b.dial(t)
	used[1].closed()
	b.await(4, second)
	third := b.dial(t)
	first.closed()
	for _, c := range []client{used[2], used[3], second, third} {
		c.send("/")
		require.Equal(t, http.StatusOK, c.status())
	}
}

// A listener leaves file descriptors to the rest of the process.
func TestConnsMax(t *testing.T) {
	require.GreaterOrEqual(t, ConnsMax(), connsMin)
	require.LessOrEqual(t, ConnsMax(), connsMax)
}
