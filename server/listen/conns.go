package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"antipode/api/protocol"
	"antipode/internal/clock"
)

// Bounds of the connections of one listener. Each costs a file descriptor, which the stores
// and the other listeners of the process need, too.
const (
	connsMax     = 8192
	connsMin     = 64
	connsDivisor = 16 // of the file descriptors that the process may have
)

// ConnsMax is how many connections a listener of this process may have, by the file limit of the process: 64 at least,
// 8,192 at most.
func ConnsMax() int {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return connsMin
	}
	return int(max(connsMin, min(files.Cur/connsDivisor, connsMax)))
}

// servedKept is how long a connection that had a request is kept before those that had none yet: its client is likely to send
// the next one just as it is closed, which client libraries retry for reads only. That holds while more than 1/silentDivisor of
// the connections had none yet, since a new client needs a round trip before its first request comes.
const (
	servedKept    = time.Second
	silentDivisor = 4
)

// conns bounds the connections of one listener. Above the bound it closes one whose request was refused and whose client
// still sends (protocol.Linger), else the one that has waited longest for a request, but for servedKept: none of them keeps a
// client out. If all have a request running, the new connection gets a 503.
type conns struct {
	max   int
	clock clock.Clock

	mu   sync.Mutex
	open map[net.Conn]*conn
	// silent are those that had no request yet, behind those that linger, and served those that had one: *conn without a
	// running request, in the order in which they are closed.
	silent, served list.List
}

type conn struct {
	net.Conn
	in      *list.List // silent or served; nil while a request runs
	at      *list.Element
	lingers bool
	since   time.Duration // when it began to wait, by clock.Mono
}

func newConns(limit int, c clock.Clock) *conns {
	return &conns{max: limit, clock: c, open: map[net.Conn]*conn{}}
}

// busyAnswer is sent on a connection above the bound.
const busyAnswer = "HTTP/1.1 503 The server is busy.\r\nRetry-After: 1\r\nx-ms-error-code: ServerBusy\r\n" +
	"Content-Length: 0\r\nConnection: close\r\n\r\n"

// state is an http.Server.ConnState callback.
func (s *conns) state(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := s.add(c); surplus == c {
			closeNow(c, busyAnswer)
		} else if surplus != nil {
			closeNow(surplus, "")
		}
	case http.StateIdle:
		if bare, ok := c.(*bareConn); ok {
			bare.serves.Store(false) // The answer is out.
		}
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(s.open[c])
	}
}

// closeNow writes words, which fit into the buffer of a new connection, and closes the
// connection without waiting for the other end. A TLS connection gets no words, because
// writing them would wait for the handshake. Errors are ignored: the connection ends anyway.
func closeNow(c net.Conn, words string) {
	if secure, ok := c.(*tls.Conn); ok {
		c, words = secure.NetConn(), ""
	}
	if words != "" {
		_, _ = io.WriteString(c, words)
	}
	_ = c.Close()
}

// add registers a connection and returns the connection to close, or nil within the bound.
func (s *conns) add(c net.Conn) (surplus net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.max {
		first := s.first()
		if first == nil {
			return c
		}
		s.drop(first)
		surplus = first.Conn
	}
	added := &conn{Conn: c}
	s.open[c] = added
	s.waits(added, &s.silent)
	return surplus
}

// first returns the connection to close for another, nil for none.
func (s *conns) first() *conn {
	silent, served := s.silent.Front(), s.served.Front()
	switch {
	case silent == nil && served == nil:
		return nil
	case silent == nil:
		return served.Value.(*conn)
	case served == nil:
		return silent.Value.(*conn)
	}
	fresh, kept := silent.Value.(*conn), served.Value.(*conn)
	lately := s.clock.Mono()-kept.since < servedKept && s.silent.Len() > s.max/silentDivisor
	if fresh.lingers || fresh.since <= kept.since || lately {
		return fresh
	}
	return kept
}

// waits puts a connection at the end of a list.
func (s *conns) waits(c *conn, in *list.List) {
	c.in, c.at, c.since = in, in.PushBack(c), s.clock.Mono()
}

// leaves takes a connection from its list.
func (s *conns) leaves(c *conn) {
	if c.in != nil {
		c.in.Remove(c.at)
		c.in, c.at = nil, nil
	}
}

func (s *conns) drop(c *conn) {
	if c != nil {
		delete(s.open, c.Conn)
		s.leaves(c)
	}
}

type connKey struct{}

// context is an http.Server.ConnContext callback: handler finds the connection by it, and learns that it lingers.
func (s *conns) context(ctx context.Context, c net.Conn) context.Context {
	ctx = protocol.OnAnswered(ctx, func() { s.lingers(c) })
	return context.WithValue(ctx, connKey{}, c)
}

// lingers records that a connection ends, and only takes what its client still sends.
func (s *conns) lingers(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.open[c]; known != nil && known.in == nil {
		known.in, known.at, known.lingers = &s.silent, s.silent.PushFront(known), true
	}
}

// handler keeps track of the connections that have a running request.
func (s *conns) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(net.Conn)
		if bare, ok := c.(*bareConn); ok {
			bare.serves.Store(true)
		}
		if !s.setRunning(c, true) {
			panic(http.ErrAbortHandler) // It was closed for another: nothing is done that its client cannot be answered for.
		}
		defer s.setRunning(c, false)
		h.ServeHTTP(w, r)
	})
}

// setRunning reports whether the connection is open.
func (s *conns) setRunning(c net.Conn, running bool) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.open[c]
	switch {
	case known == nil:
		return false
	case running:
		s.leaves(known)
	case known.in == nil: // It does not linger.
		s.waits(known, &s.served)
	}
	return true
}
