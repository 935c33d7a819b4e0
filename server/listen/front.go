package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/api/protocol"
	"antipode/geo"
)

// Limits of a front end's listener (protocol/blob.md 23: URLs of about 8 KiB; keys of a
// table make longer ones, protocol/table.md 1.4).
const (
	headerBytesMax = 64 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
	// silentGrace is how long a connection that never sent a byte may still begin a
	// request while the front end drains. Clients keep such connections in reserve, and
	// http.Server would wait five seconds for them.
	silentGrace = 250 * time.Millisecond
	// endTimeout is how long handlers may go on once the drain is over and their contexts
	// have ended.
	endTimeout = 2 * time.Second
)

// Front is a set of HTTP listeners that start and stop together.
type Front struct {
	servers []*http.Server
	addrs   []net.Addr
	done    errgroup.Group
	// drain is drainTimeout, but in tests.
	drain time.Duration
	// cancel ends the contexts of all requests.
	cancel context.CancelFunc

	mu     sync.Mutex
	silent map[net.Conn]struct{} // connections that never sent a byte
	// running counts the handlers under way. idle, if set, is closed when there is none.
	running int
	idle    chan struct{}
}

// Listener is one address and what answers there.
type Listener struct {
	// Addr is host:port.
	Addr    string
	Handler http.Handler
	// TLS, if set, is how connections are made; nil is plain HTTP.
	TLS *tls.Config
	// Limit, if set, changes the server's limits, which are those of a front end.
	Limit func(*http.Server)
	// What names it in errors.
	What string
}

// Open listens on every address before it serves on any, so that a busy port is told
// at once; ports names where an operator chooses them. Close must follow.
func Open(ls []Listener, ports string, log *slog.Logger) (*Front, error) {
	base, cancel := context.WithCancel(context.Background())
	f := &Front{silent: map[net.Conn]struct{}{}, drain: drainTimeout, cancel: cancel}
	var open []net.Listener
	for _, l := range ls {
		n, err := net.Listen("tcp", l.Addr)
		if err != nil {
			cancel()
			for _, o := range open {
				err = errors.Join(err, o.Close())
			}
			return nil, fmt.Errorf("cannot listen on %s (%s): %w; stop what uses the port, or choose others with %s", l.Addr, l.What, err, ports)
		}
		if l.TLS != nil {
			n = tls.NewListener(n, l.TLS)
		}
		open = append(open, n)
	}
	for i, l := range ls {
		c := newConns(connsLimit())
		s := &http.Server{
			Handler: f.counted(c.handler(l.Handler)), BaseContext: func(net.Listener) context.Context { return base }, ConnContext: c.context,
			ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: protocol.AnswerMax, MaxHeaderBytes: headerBytesMax,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			ConnState: func(n net.Conn, state http.ConnState) {
				f.connState(n, state)
				c.state(n, state)
			},
		}
		if l.Limit != nil {
			l.Limit(s)
		}
		n := open[i]
		f.servers, f.addrs = append(f.servers, s), append(f.addrs, n.Addr())
		f.done.Go(func() error {
			if err := s.Serve(n); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	return f, nil
}

// connState keeps track of the connections that never sent a byte.
func (f *Front) connState(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.silent[c] = struct{}{}
	} else {
		delete(f.silent, c)
	}
}

// Addrs are the addresses listened on, in the order of Open.
func (f *Front) Addrs() []net.Addr { return f.addrs }

// counted notes which handlers are under way.
func (f *Front) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.running++
		f.mu.Unlock()
		defer f.leave()
		h.ServeHTTP(w, r)
	})
}

func (f *Front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running--; f.running == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// Close drains the requests under way, for a bounded time, then ends their contexts and
// connections, and closes. An error says that handlers went on all the same.
func (f *Front) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), f.drain)
	defer stop()
	hurry := time.AfterFunc(silentGrace, f.closeSilent)
	defer hurry.Stop()
	// An upload or a download ends with its connection; what works without one, with its
	// context.
	end := context.AfterFunc(ctx, f.cancel)
	defer end()
	var drained errgroup.Group
	for _, s := range f.servers {
		drained.Go(func() error {
			if s.Shutdown(ctx) != nil {
				return s.Close() // The time is over: what still runs is cut off.
			}
			return nil
		})
	}
	err := errors.Join(drained.Wait(), f.done.Wait())
	f.cancel()
	return errors.Join(err, f.ended())
}

// errRunning: a handler looks neither at its context nor at its connection.
var errRunning = errors.New("requests go on after the listeners were closed and their contexts ended")

// ended waits for handlers.
func (f *Front) ended() error {
	idle := make(chan struct{})
	f.mu.Lock()
	if f.running == 0 {
		close(idle)
	} else {
		f.idle = idle
	}
	f.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-time.After(endTimeout):
		return errRunning
	}
}

func (f *Front) closeSilent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.silent {
		_ = c.Close() // It may be gone already.
	}
}

// Services lists the listeners of a front end: one for each service.
func Services(addr func(geo.Service) string, what string, handler func(geo.Service) http.Handler) []Listener {
	var ls []Listener
	for _, s := range geo.Services {
		ls = append(ls, Listener{Addr: addr(s), Handler: handler(s), What: what + " " + s.String()})
	}
	return ls
}
