package location

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"antipode/server/listen"
)

// ServerOptions configures a Server. All fields are required.
type ServerOptions struct {
	Location *Location
	// Listeners returns the listeners of the front end, at each start.
	Listeners func() []listen.Listener
	// Ports is where an operator chooses the ports.
	Ports  string
	Logger *slog.Logger
}

// Server runs what this process runs of a location, together with its front end. Operators
// stop and start both. Methods may be called concurrently.
type Server struct {
	o ServerOptions

	// life ends with End; it is the context of starts that operators began.
	life   context.Context
	end    context.CancelFunc
	starts sync.WaitGroup
	// beginMu is held while a start is added to starts and while life ends, so that none is
	// added afterwards.
	beginMu sync.Mutex

	mu sync.Mutex // held by Start and Stop
	// stopped: it was stopped, and not started since.
	stopped atomic.Bool
	// listeners is nil while the location is stopped or starts. Changed under mu.
	listeners atomic.Pointer[listen.Server]
}

// NewServer returns a server that is not started. End must follow, and Stop while it runs.
func NewServer(o ServerOptions) *Server {
	s := &Server{o: o}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Running reports whether the location and its front end are started.
func (s *Server) Running() bool { return s.listeners.Load() != nil }

// ErrRuns: there is nothing to start.
var ErrRuns = errors.New("runs already")

// Stopped reports whether the location was stopped and not started since.
func (s *Server) Stopped() bool { return s.stopped.Load() }

// Call has the front end of the location answer a request that came to another one of the process: see listen.Server.Call.
// It reports false while the location is stopped or starts.
func (s *Server) Call(addr string, w http.ResponseWriter, r *http.Request) (served bool) {
	f := s.listeners.Load()
	return f != nil && f.Call(addr, w, r)
}

// Start starts the location, then its front end: until then a connection is refused, so that a client or gateway asks
// another node that serves it at once. It takes as long as reading the stores takes;
// ctx ends it after the step under way.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.o.Location
	if s.Running() {
		return fmt.Errorf("%s %w", l.Subject(), ErrRuns)
	}
	if err := l.Start(ctx); err != nil {
		return err
	}
	l.draining.Store(false)
	f, err := listen.Open(s.o.Listeners(), s.o.Ports, s.o.Logger)
	if err != nil {
		return errors.Join(err, l.Stop())
	}
	s.stopped.Store(false)
	s.listeners.Store(f)
	return nil
}

// beginWait is how long Begin waits for a start to fail.
const beginWait = 5 * time.Second

// Begin starts the location for an operator. It returns when the location runs or has failed
// to start, or after beginWait: a start that takes longer goes on until End.
func (s *Server) Begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beginWait)
	defer cancel()
	done := make(chan error, 1)
	s.beginMu.Lock()
	if s.life.Err() != nil {
		s.beginMu.Unlock()
		return ErrStopped
	}
	s.starts.Go(func() {
		err := s.Start(s.life)
		if err != nil {
			s.o.Logger.Error("start failed", "what", s.o.Location.Subject(), "error", err)
		}
		done <- err
	})
	s.beginMu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	case <-s.life.Done():
	}
	return nil
}

// Stop drains and stops the front end, then the location.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.listeners.Swap(nil)
	if f == nil {
		return fmt.Errorf("%s is stopped", s.o.Location.Subject())
	}
	s.stopped.Store(true)
	return errors.Join(f.Close(), s.o.Location.Stop())
}

// End ends the starts under way and allows no further ones. It does not stop what runs.
func (s *Server) End() {
	s.beginMu.Lock()
	s.end()
	s.beginMu.Unlock()
	s.starts.Wait()
}
