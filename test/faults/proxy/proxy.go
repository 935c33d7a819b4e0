package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Fault is what is wrong with a link. The zero value is nothing.
type Fault struct {
	// Refuse resets every connection and refuses new ones, as where nobody listens.
	Refuse bool
	// HoldForth holds back what the side that connects sends, HoldBack what the other
	// side answers. Both are a network that swallows packets.
	HoldForth, HoldBack bool
	// Delay is added to every byte, in each direction.
	Delay time.Duration
}

const (
	// segmentBytes and segmentsMax bound what is on its way in one direction of a connection.
	segmentBytes = 32 << 10
	segmentsMax  = 64
	dialWait     = 5 * time.Second
)

// Link carries the connections made to Addr to one target. Methods may be called
// concurrently.
type Link struct {
	target  string
	port    *port
	rates   Rates
	running sync.WaitGroup

	mu    sync.Mutex
	fault Fault
	// absent is set while the target is known not to run.
	absent bool
	// changed is closed when fault changes, and replaced. Guarded by mu, as is all below.
	changed chan struct{}
	conns   map[net.Conn]bool
	// listener is nil while connections are refused.
	listener net.Listener
	closed   bool
}

// Open listens on a free loopback port for connections to target, and carries no more than the
// rates allow. Close ends it.
func Open(target string, rates Rates) (*Link, error) {
	p, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	l := &Link{target: target, port: p, rates: rates, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.listen(); err != nil {
		return nil, errors.Join(fmt.Errorf("proxy to %s: %w", target, err), p.release())
	}
	return l, nil
}

// Addr is where to connect instead of the target.
func (l *Link) Addr() string { return l.port.address }

// Set makes the link faulty, or whole with the zero value, from now on.
func (l *Link) Set(f Fault) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
	return l.listen()
}

// SetAbsent records whether the target has ended or listens again: who connects to it
// meanwhile is refused, as it would be without the link.
func (l *Link) SetAbsent(absent bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.absent = absent
	return l.listen()
}

// listen makes the listener and the connections be as fault and absent say. The caller
// holds mu.
func (l *Link) listen() (err error) {
	close(l.changed)
	l.changed = make(chan struct{})
	if l.refuses() {
		if l.listener != nil {
			err = l.listener.Close()
			l.listener = nil
		}
		for c := range l.conns {
			abort(c)
		}
		return err
	}
	if l.listener == nil {
		if l.listener, err = l.rates.listen(l.port.address); err != nil {
			l.listener = nil
			return err
		}
		listener := l.listener
		l.running.Go(func() { l.accept(listener) })
	}
	return nil
}

func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Fails for a connection that has ended.
	}
	_ = c.Close()
}

// now returns the fault, whether there are no connections, and what is closed when either changes.
func (l *Link) now() (f Fault, refuses bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.refuses(), l.changed
}

// Close ends the link and its connections, and returns when all of it is gone.
func (l *Link) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	err := l.listen()
	l.mu.Unlock()
	l.running.Wait()
	if first {
		err = errors.Join(err, l.port.release())
	}
	return err
}

func (l *Link) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return // It was closed.
		}
		if !l.keep(c) {
			continue
		}
		l.running.Go(func() { l.carry(c) })
	}
}

// keep takes a connection in; false, and it is reset, where it must not be.
func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil {
		abort(c)
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	_ = c.Close()
}

// carry joins one connection with one to the target until both have ended.
func (l *Link) carry(near net.Conn) {
	defer l.drop(near)
	far, err := l.rates.dial(l.target)
	if err != nil {
		abort(near)
		return
	}
	if !l.keep(far) {
		abort(near)
		return
	}
	defer l.drop(far)
	var pumps sync.WaitGroup
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(ended) }) }
	pumps.Go(func() {
		l.pump(far, near, l.rates.Forth, ended, end, func(f Fault) bool { return f.HoldForth })
	})
	pumps.Go(func() {
		l.pump(near, far, l.rates.Back, ended, end, func(f Fault) bool { return f.HoldBack })
	})
	pumps.Wait()
}

// segment is bytes on their way, and when they came in.
type segment struct {
	data []byte
	at   time.Time
}

// pump carries one direction. An error of either side ends the connection; the end of what
// one side sends is passed on. What the rate does not let through yet is not read: it waits
// in the connection.
func (l *Link) pump(to, from net.Conn, rate *Rate, ended <-chan struct{}, end func(), held func(Fault) bool) {
	way := make(chan segment, segmentsMax)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(way)
		for {
			buf := make([]byte, segmentBytes)
			n, err := from.Read(buf)
			if n > 0 {
				if !l.turn(rate.reserve(n, time.Now()), ended) {
					return
				}
				select {
				case way <- segment{buf[:n], time.Now()}:
				case <-ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range way {
		if !l.wait(p.at, ended, held) {
			break
		}
		if _, err := to.Write(p.data); err != nil {
			end()
			abort(from)
			break
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // Fails for a connection that has ended.
	}
	for range way { // Until the reader has seen the end.
	}
	reader.Wait()
}

// turn waits for the turn of what was read; false when the connection has ended.
func (l *Link) turn(wait time.Duration, ended <-chan struct{}) bool {
	if wait <= 0 {
		return true
	}
	due := time.NewTimer(wait)
	defer due.Stop()
	for {
		_, refuses, changed := l.now()
		if refuses {
			return false // Its connections are being reset.
		}
		select {
		case <-due.C:
			return true
		case <-changed:
		case <-ended:
			return false
		}
	}
}

// refuses reports whether there are no connections now. The caller holds mu.
func (l *Link) refuses() bool { return l.closed || l.absent || l.fault.Refuse }

// wait returns when what came in at a time may go on; false when the connection has ended.
func (l *Link) wait(at time.Time, ended <-chan struct{}, held func(Fault) bool) bool {
	for {
		f, refuses, changed := l.now()
		if refuses {
			return false // Its connections are being reset.
		}
		var due <-chan time.Time
		if !held(f) {
			left := time.Until(at.Add(f.Delay))
			if left <= 0 {
				return true
			}
			due = time.After(left)
		}
		select {
		case <-due:
		case <-changed:
		case <-ended:
			return false
		}
	}
}
