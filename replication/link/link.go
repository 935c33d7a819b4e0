package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrCut: the link between the locations is cut.
var ErrCut = errors.New("link between the locations is cut")

// CallTimeout bounds one call over the link, its delay not counted: a location that
// hangs looks like one that is cut off.
const CallTimeout = 10 * time.Second

// Link is the switch between two locations. Methods may be called concurrently.
type Link struct {
	mu    sync.RWMutex
	cut   bool
	delay time.Duration
	// conns are the connections open over the link. A cut closes them.
	conns map[net.Conn]struct{}
	// whole is the context of calls in flight. The next cut ends it.
	whole context.Context //nolint:containedctx // Spans calls of many callers.
	sever context.CancelFunc

	wg     sync.WaitGroup
	ctx    context.Context //nolint:containedctx // Ends the calls in flight at Close; there is no caller to pass one.
	cancel context.CancelFunc
}

// New returns a healed link.
func New() *Link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{conns: map[net.Conn]struct{}{}, ctx: ctx, cancel: cancel}
	l.whole, l.sever = context.WithCancel(ctx)
	return l
}

// Close ends all calls in flight and waits for them.
func (l *Link) Close() {
	l.mu.Lock() // Wait until no Go is between its check and its start.
	l.cancel()
	l.mu.Unlock()
	l.wg.Wait()
}

// Cut lets nothing through from now on and closes what is open.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.sever()
	for c := range l.conns {
		_ = c.Close() // Its user sees the error.
	}
	clear(l.conns)
}

// Heal ends a cut and a delay.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.join(0)
}

// Delay makes each call and publish take d longer.
func (l *Link) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.join(d)
}

// join ends a cut. The caller holds mu.
func (l *Link) join(d time.Duration) {
	if l.cut {
		l.whole, l.sever = context.WithCancel(l.ctx)
	}
	l.cut, l.delay = false, d
}

// State reports whether the link is cut, and its delay.
func (l *Link) State() (cut bool, delay time.Duration) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.cut, l.delay
}

// Pass waits for the delay to end. It returns ErrCut if the link is cut before or after the wait,
// or closed.
func (l *Link) Pass(ctx context.Context) error {
	cut, delay := l.State()
	if cut || l.ctx.Err() != nil {
		return ErrCut
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.ctx.Done():
	case <-timer.C:
	}
	if cut, _ := l.State(); cut || l.ctx.Err() != nil {
		return ErrCut
	}
	return ctx.Err()
}

// Do makes f a call over the link: it runs after the delay, with a context that ends with a cut,
// with Close, and after CallTimeout. It returns ErrCut also if the cut came while f ran: the call
// may have taken effect, its answer is lost.
func (l *Link) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if err := l.Pass(ctx); err != nil {
		return err
	}
	l.mu.RLock()
	whole := l.whole
	l.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	defer context.AfterFunc(whole, cancel)()
	err := f(ctx)
	if whole.Err() != nil || l.ctx.Err() != nil {
		return ErrCut
	}
	return err
}

// Go runs f on a goroutine that Close ends by the context and waits for, and reports
// false, without running it, once Close was called.
func (l *Link) Go(f func(ctx context.Context)) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.wg.Go(func() { f(l.ctx) })
	return true
}

// Dial connects to an HTTP front end of the other location.
func (l *Link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := l.Pass(ctx); err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return l.Over(c)
}

// Over returns c as a connection that a cut closes. If the link is cut, it closes c and returns
// ErrCut.
func (l *Link) Over(c net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.Join(ErrCut, c.Close())
	}
	l.conns[c] = struct{}{}
	return &conn{Conn: c, l: l}, nil
}

type conn struct {
	net.Conn
	l *Link
}

// Close forgets the connection and closes it.
func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c.Conn)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
