package proxy

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Rate is a bound of bytes per second that any number of links share, in one direction of each:
// the width of the line that all of them go over. The connections get their turns in the order in
// which their bytes come in. Methods may be called concurrently, also of a nil Rate, which bounds
// nothing.
type Rate struct {
	mu        sync.Mutex
	perSecond int64     // 0 is no bound
	free      time.Time // when the line has carried what it was given
	carried   int64
}

// Set bounds what is read from now on, in bytes per second. Zero is no bound.
func (r *Rate) Set(perSecond int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.free = perSecond, time.Time{}
}

// Carried returns the bytes that came in since the start.
func (r *Rate) Carried() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carried
}

// reserve gives n bytes their turn, and returns how long after now it has ended.
func (r *Rate) reserve(n int, now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carried += int64(n)
	if r.perSecond == 0 {
		return 0
	}
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(n) * time.Second / time.Duration(r.perSecond))
	return r.free.Sub(now)
}

// Rates are those of a link: of what the side that connects sends, and of what the other side
// answers.
type Rates struct{ Forth, Back *Rate }

// Of a connection with a rate: what is sent waits at the sender, as it does before a line of this
// width, and not in the kernel of this machine, whose loopback would take megabytes.
const (
	segmentMax = 1400
	bufferMax  = 64 << 10
)

// control makes the socket of a link with rates keep little.
func (r Rates) control(_, _ string, c syscall.RawConn) (err error) {
	if r == (Rates{}) {
		return nil
	}
	controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segmentMax)
		if err == nil {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, bufferMax)
		}
	})
	if err == nil {
		err = controlErr
	}
	return err
}

func (r Rates) listen(address string) (net.Listener, error) {
	c := net.ListenConfig{Control: r.control}
	return c.Listen(context.Background(), "tcp", address)
}

func (r Rates) dial(address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialWait, Control: r.control}
	return d.Dial("tcp", address)
}
