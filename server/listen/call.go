package listen

import (
	"context"
	"net/http"
	"time"

	"antipode/api/protocol"
)

// Call has the handler of the listener at addr answer a request that came to another listener of the process. It reports
// false, and nothing happened, once the listeners are closed or about to be. A call is one of the running requests: Drain and
// Close wait for it, and what Close cuts off breaks off as a connection does: the call panics with http.ErrAbortHandler.
func (s *Server) Call(addr string, w http.ResponseWriter, r *http.Request) (served bool) {
	h := s.handlers[addr]
	if h == nil || !s.enter() {
		return false
	}
	defer s.leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	cutOff := make(chan struct{})
	stop := context.AfterFunc(s.base, func() {
		defer close(cutOff)
		cancel()
		protocol.StopSender(r)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // A connection without one is a test's.
	})
	defer func() {
		if !stop() {
			<-cutOff // It uses the connection, which may get another request.
		}
	}()
	called := callWriter{w, s.base}
	h.ServeHTTP(called, r.WithContext(ctx))
	called.check()
	return true
}

// enter counts a handler that is called, unless the listeners are about to be closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.running++
	return true
}

// callWriter takes the answer to a call until over ends. From then on an answer must not look whole, and a deadline that the
// handler sets has no use.
type callWriter struct {
	http.ResponseWriter
	over context.Context
}

func (w callWriter) check() {
	if w.over.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// WriteHeader implements http.ResponseWriter.
func (w callWriter) WriteHeader(status int) {
	w.check()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w callWriter) Write(p []byte) (int, error) {
	w.check()
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w callWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
