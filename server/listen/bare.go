package listen

import (
	"net"
	"strconv"
	"sync/atomic"
)

// bareListener gives connections on which the service answers what net/http refuses by itself: a request that it cannot read.
type bareListener struct {
	net.Listener
	unread func(status int) []byte
}

// Accept implements net.Listener.
func (l bareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &bareConn{TCPConn: tcp, unread: l.unread}, nil
	}
	return c, err
}

// bareConn is a connection to clients. Bytes written while no handler has taken up a request are an answer made by
// net/http, in one write, the last one of the connection. It begins with "HTTP/1.1 " and the status.
type bareConn struct {
	*net.TCPConn
	unread func(status int) []byte
	// serves is set from when a handler takes up a request until its answer is written.
	serves atomic.Bool
}

// Write implements net.Conn.
func (c *bareConn) Write(p []byte) (int, error) {
	const before, digits = len("HTTP/1.1 "), 3
	if c.serves.Load() || len(p) < before+digits {
		return c.TCPConn.Write(p)
	}
	status, err := strconv.Atoi(string(p[before : before+digits]))
	if err != nil || status < 400 {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(c.unread(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}
