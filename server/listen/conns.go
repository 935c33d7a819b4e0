package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"
)

// Bounds of the connections of one listener. Every one costs a file descriptor, of which
// the stores and the other listeners of the process need their own.
const (
	connsMax     = 8192
	connsMin     = 64
	connsDivisor = 16 // of the file descriptors that the process may have
)

// connsLimit is how many connections a listener of this process may have.
func connsLimit() int {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return connsMin
	}
	return int(max(connsMin, min(files.Cur/connsDivisor, connsMax)))
}

// conns bounds the connections of one listener. When there are too many the one that has
// waited longest for a request is closed, so that connections that do nothing keep nobody
// out. Where all are at work the new one gets a 503.
type conns struct {
	max int

	mu      sync.Mutex
	open    map[net.Conn]*conn
	waiting list.List // of *conn: those without a request under way, the longest first
}

type conn struct {
	net.Conn
	at *list.Element // in waiting; nil while a request is under way
}

func newConns(limit int) *conns { return &conns{max: limit, open: map[net.Conn]*conn{}} }

// busyAnswer is what a connection beyond the bound gets.
const busyAnswer = "HTTP/1.1 503 The server is busy.\r\nRetry-After: 1\r\nx-ms-error-code: ServerBusy\r\n" +
	"Content-Length: 0\r\nConnection: close\r\n\r\n"

// state takes a change of a connection, as http.Server tells it.
func (s *conns) state(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := s.add(c); surplus == c {
			closeNow(c, busyAnswer)
		} else if surplus != nil {
			closeNow(surplus, "")
		}
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(s.open[c])
	}
}

// closeNow writes a few words, which fit into the buffer of a new connection, and closes it,
// without waiting for the other end: one that is encrypted gets no words, since it would be
// waited for in the handshake. What fails ends with the connection.
func closeNow(c net.Conn, words string) {
	if secure, ok := c.(*tls.Conn); ok {
		c, words = secure.NetConn(), ""
	}
	if words != "" {
		_, _ = io.WriteString(c, words)
	}
	_ = c.Close()
}

// add notes a connection, and returns the one to close; nil where they are few enough.
func (s *conns) add(c net.Conn) (surplus net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest *conn
	if len(s.open) >= s.max {
		if s.waiting.Len() == 0 {
			return c
		}
		longest = s.waiting.Front().Value.(*conn)
		s.drop(longest)
		surplus = longest.Conn
	}
	added := &conn{Conn: c}
	added.at = s.waiting.PushBack(added)
	s.open[c] = added
	return surplus
}

func (s *conns) drop(c *conn) {
	if c == nil {
		return
	}
	delete(s.open, c.Conn)
	if c.at != nil {
		s.waiting.Remove(c.at)
		c.at = nil
	}
}

type connKey struct{}

// context names the connection to the handlers of its requests.
func (s *conns) context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// handler notes which connections have a request under way.
func (s *conns) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(net.Conn)
		s.works(c, true)
		defer s.works(c, false)
		h.ServeHTTP(w, r)
	})
}

func (s *conns) works(c net.Conn, works bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.open[c]
	switch {
	case known == nil: // Closed a moment ago.
	case works && known.at != nil:
		s.waiting.Remove(known.at)
		known.at = nil
	case !works && known.at == nil:
		known.at = s.waiting.PushBack(known)
	}
}
