package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
)

// Limits of a front end's listener (spec/blob.md 23: URLs of about 8 KiB; keys of a
// table make longer ones, spec/table.md 1.4).
const (
	headerBytesMax = 64 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
)

// front is a set of HTTP listeners that start and stop together.
type front struct {
	servers []*http.Server
	done    errgroup.Group
}

// listener is one address and what answers there.
type listener struct {
	addr    string
	handler http.Handler
	what    string
}

// openFront listens on every address before it serves on any, so that a busy port
// is told at once.
func openFront(ls []listener, log *slog.Logger) (*front, error) {
	f := &front{}
	var open []net.Listener
	for _, l := range ls {
		n, err := net.Listen("tcp", l.addr)
		if err != nil {
			for _, o := range open {
				err = errors.Join(err, o.Close())
			}
			return nil, fmt.Errorf("cannot listen on %s (%s): %w; stop what uses the port, or choose others with --port-base", l.addr, l.what, err)
		}
		open = append(open, n)
	}
	for i, l := range ls {
		s := &http.Server{
			Handler: l.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}
		f.servers = append(f.servers, s)
		n := open[i]
		f.done.Go(func() error {
			if err := s.Serve(n); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	return f, nil
}

// close drains the requests under way, for a bounded time, and closes.
func (f *front) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var errs []error
	for _, s := range f.servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, f.done.Wait())...)
}

// listeners lists a handler for each service of a front end.
func listeners(p ports, what string, handler func(geo.Service) http.Handler) []listener {
	var ls []listener
	for _, s := range geo.Services {
		ls = append(ls, listener{p.of(s), handler(s), what + " " + s.String()})
	}
	return ls
}
