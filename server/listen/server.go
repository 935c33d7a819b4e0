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
	"antipode/internal/clock"
)

// Limits of a front end's listener (protocol/blob.md 23: URLs of about 8 KiB; keys of a
// table make longer ones, protocol/table.md 1.4).
const (
	headerBytesMax = 64 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
	// silentGrace is how long, in a drain, a connection that never sent a byte may still
	// begin a request. Clients keep such connections in reserve, and http.Server would wait
	// five seconds for them.
	silentGrace = 250 * time.Millisecond
	// endTimeout is how long handlers may run after the drain, when their contexts have
	// ended.
	endTimeout = 2 * time.Second
)

// Server is a set of HTTP listeners that start and stop together.
type Server struct {
	servers []*http.Server
	addrs   []net.Addr
	done    errgroup.Group
	// drain is drainTimeout, and zero after Drain; tests shorten it.
	drain time.Duration
	// base is the context of all requests, and cancel ends it.
	base   context.Context
	cancel context.CancelFunc
	// handlers answer the requests of Call, by the address of their listener.
	handlers map[string]http.Handler

	mu     sync.Mutex
	silent map[net.Conn]struct{} // connections that never sent a byte
	// running counts the handlers that run. idle, if set, is closed when running is zero.
	running int
	idle    chan struct{}
	// closing: the listeners take no more requests.
	closing bool
}

// Listener is one address and its handler.
type Listener struct {
	// Addr is host:port.
	Addr    string
	Handler http.Handler
	// TLS configures the connections; nil means plain HTTP.
	TLS *tls.Config
	// Unread returns the answer to a request that cannot be read, refused with a status. Nil leaves net/http's own.
	Unread func(status int) []byte
	// Limit changes the server's limits. Nil leaves those of a front end.
	Limit func(*http.Server)
	// What names the listener in errors.
	What string
}

// Open listens on every address before it serves on any, so that a busy port fails the whole
// start. ports names where an operator chooses the ports. Close must follow.
func Open(ls []Listener, ports string, log *slog.Logger) (*Server, error) {
	var open []net.Listener
	for _, l := range ls {
		n, err := net.Listen("tcp", l.Addr)
		if err != nil {
			for _, o := range open {
				err = errors.Join(err, o.Close())
			}
			return nil, fmt.Errorf("cannot listen on %s (%s): %w; %s", l.Addr, l.What, err, Remedy(err, ports))
		}
		if l.Unread != nil {
			n = bareListener{n, l.Unread}
		}
		if l.TLS != nil {
			n = tls.NewListener(n, l.TLS)
		}
		open = append(open, n)
	}
	base, cancel := context.WithCancel(context.Background())
	s := &Server{silent: map[net.Conn]struct{}{}, drain: drainTimeout, base: base, cancel: cancel, handlers: map[string]http.Handler{}}
	for i, l := range ls {
		s.handlers[l.Addr] = l.Handler
		s.serve(open[i], s.httpServer(l, log))
	}
	return s, nil
}

// httpServer configures the server of one listener.
func (s *Server) httpServer(l Listener, log *slog.Logger) *http.Server {
	c := newConns(ConnsMax(), clock.System{})
	h := &http.Server{
		Handler: s.counted(c.handler(l.Handler)), BaseContext: func(net.Listener) context.Context { return s.base }, ConnContext: c.context,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: protocol.AnswerMax, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnState: func(n net.Conn, state http.ConnState) {
			s.connState(n, state)
			c.state(n, state)
		},
	}
	if l.Limit != nil {
		l.Limit(h)
	}
	return h
}

func (s *Server) serve(n net.Listener, h *http.Server) {
	s.servers, s.addrs = append(s.servers, h), append(s.addrs, n.Addr())
	s.done.Go(func() error {
		if err := h.Serve(n); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// connState keeps track of the connections that never sent a byte.
func (s *Server) connState(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew {
		s.silent[c] = struct{}{}
	} else {
		delete(s.silent, c)
	}
}

// Addrs are the addresses listened on, in the order of Open.
func (s *Server) Addrs() []net.Addr { return s.addrs }

// counted counts the handlers that run.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.running++
		s.mu.Unlock()
		defer s.leave()
		h.ServeHTTP(w, r)
	})
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Drain closes the listeners, waits until the running requests have ended, and returns how many had not when ctx ended:
// Close, which must follow, ends those at once.
func (s *Server) Drain(ctx context.Context) (left int) {
	s.shutdown(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain = 0
	return s.running
}

// shutdown closes the listeners and waits until the running requests have ended or ctx has.
func (s *Server) shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	hurry := time.AfterFunc(silentGrace, s.closeSilent)
	defer hurry.Stop()
	var drained sync.WaitGroup
	for _, h := range s.servers {
		drained.Go(func() { _ = h.Shutdown(ctx) }) // Its error is that of ctx.
	}
	drained.Wait()
	_ = s.ended(ctx) // Calls have no connection here. Its error is that of ctx, too.
}

// Close drains the running requests for a bounded time, ends the contexts and connections of
// those that are left, and closes the listeners. It returns errRunning if handlers do not end
// even then.
func (s *Server) Close() error {
	s.mu.Lock()
	drain := s.drain
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), drain)
	defer stop()
	// Uploads and downloads end with their connection, other work with its context.
	end := context.AfterFunc(ctx, s.cancel)
	defer end()
	s.shutdown(ctx)
	var errs []error
	if ctx.Err() != nil { // The time is over.
		for _, h := range s.servers {
			errs = append(errs, h.Close())
		}
	}
	errs = append(errs, s.done.Wait())
	s.cancel()
	ctx, stop = context.WithTimeout(context.Background(), endTimeout)
	defer stop()
	return errors.Join(append(errs, s.ended(ctx))...)
}

// errRunning: a handler watches neither its context nor its connection.
var errRunning = errors.New("requests go on after the listeners were closed and their contexts ended")

// ended waits for the handlers until ctx ends.
func (s *Server) ended(ctx context.Context) error {
	idle := make(chan struct{})
	s.mu.Lock()
	if s.running == 0 {
		close(idle)
	} else {
		s.idle = idle
	}
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return errRunning
	}
}

func (s *Server) closeSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.silent {
		_ = c.Close() // It may be closed already.
	}
}

// FrontEnd answers the requests of the services.
type FrontEnd interface {
	Handler(s geo.Service) http.Handler
	// Unread returns a whole answer to a request that was refused with a status before a handler saw it.
	Unread(s geo.Service, status int) []byte
}

// Services lists the listeners of a front end: one for each service.
func Services(addr func(geo.Service) string, what string, f FrontEnd) []Listener {
	var ls []Listener
	for _, s := range geo.Services {
		unread := func(status int) []byte { return f.Unread(s, status) }
		ls = append(ls, Listener{Addr: addr(s), Handler: f.Handler(s), Unread: unread, What: what + " " + s.String()})
	}
	return ls
}
