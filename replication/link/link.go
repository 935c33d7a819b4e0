package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"antipode/replication/stream"
)

// ErrCut: the link between the locations is cut.
var ErrCut = errors.New("link between the locations is cut")

// Link is the switch between two locations. Methods may be called concurrently.
type Link struct {
	mu    sync.RWMutex
	cut   bool
	delay time.Duration
	// conns are what is open over the link, closed by a cut.
	conns map[net.Conn]struct{}

	wg     sync.WaitGroup
	ctx    context.Context //nolint:containedctx // Ends the calls in flight at Close; there is no caller to pass one.
	cancel context.CancelFunc
}

// New returns a healed link.
func New() *Link {
	ctx, cancel := context.WithCancel(context.Background())
	return &Link{conns: map[net.Conn]struct{}{}, ctx: ctx, cancel: cancel}
}

// Close ends all calls in flight and waits for them.
func (l *Link) Close() {
	l.cancel()
	l.wg.Wait()
}

// Cut lets nothing through from now on and breaks what is open.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		_ = c.Close() // Its user sees the error.
	}
	clear(l.conns)
}

// Heal ends a cut and a delay.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.delay = false, 0
}

// Delay makes each call and publish take d longer.
func (l *Link) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.delay = false, d
}

// State reports whether the link is cut, and its delay.
func (l *Link) State() (cut bool, delay time.Duration) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.cut, l.delay
}

// Pass waits out the delay; ErrCut where the link is cut before or after it.
func (l *Link) Pass(ctx context.Context) error {
	cut, delay := l.State()
	if cut {
		return ErrCut
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return ErrCut
	case <-timer.C:
	}
	if cut, _ := l.State(); cut {
		return ErrCut
	}
	return nil
}

// Go runs f on a goroutine of the link, after the delay, with ErrCut where nothing
// gets through.
func (l *Link) Go(f func(ctx context.Context, err error)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ctx.Err() != nil {
		return // Closing: nobody waits any more.
	}
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		f(l.ctx, l.Pass(l.ctx))
	}()
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

// Over makes a connection one that a cut closes; ErrCut, and c closed, where the link
// is cut.
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

// Publisher passes publishes through the link to p.
func (l *Link) Publisher(p stream.Publisher) stream.Publisher { return &publisher{p, l} }

type publisher struct {
	stream.Publisher
	l *Link
}

// Publish implements stream.Publisher. With a delay the publishes of one caller
// stay in order, because each waits for as long as the one before it.
func (p *publisher) Publish(subject string, data []byte, done func(error)) error {
	cut, delay := p.l.State()
	if cut {
		return stream.ErrUnavailable
	}
	if delay == 0 {
		return p.Publisher.Publish(subject, data, done)
	}
	p.l.Go(func(_ context.Context, err error) {
		if err != nil {
			done(stream.ErrUnavailable)
			return
		}
		if err := p.Publisher.Publish(subject, data, done); err != nil {
			done(err)
		}
	})
	return nil
}
