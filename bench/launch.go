package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/devproc"
)

// How long a server of the run's own may take to be ready, and to end.
const (
	launchWait = 5 * time.Minute
	endWait    = 2 * time.Minute
)

// launched is an antipode dev that a run started for itself. What bench finds in its
// environment, GOMEMLIMIT say, the server does too.
type launched struct {
	*devproc.Process
	http  *http.Client
	ports devproc.Held
}

// launch starts a server on the data in dir and returns when it is ready.
func launch(ctx context.Context, o Options, dir string, args ...string) (*launched, error) {
	l := &launched{http: devproc.NewHTTPClient()}
	base, err := devproc.FreePortBase(&l.ports)
	if err != nil {
		return nil, err
	}
	l.Process, err = devproc.Start(devproc.Config{Binary: o.Server, Dir: dir, PortBase: base, Args: args, HTTP: l.http})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, launchWait)
	defer cancel()
	if err := l.Ready(ctx); err != nil {
		return nil, errors.Join(err, l.Kill9())
	}
	if o.StopLocation != "" {
		if _, err := l.Admin().StopLocation(ctx, geo.Location(o.StopLocation)); err != nil {
			return nil, errors.Join(err, l.end())
		}
	}
	return l, nil
}

// end lets the server end in order: what it holds is kept, and its next start replays
// nothing.
func (l *launched) end() error {
	defer l.ports.Release()
	defer l.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	return l.Stop(ctx)
}

// aim returns the options with this server in them: the ports of the gateway, as users have them.
func (l *launched) aim(o Options) Options {
	port := l.PortBase + 2 - portsBelowTables(o.Workload)
	o.Endpoint = fmt.Sprintf("http://127.0.0.1:%d/%s", port, o.Account)
	o.Admin, o.PID = l.AdminURL(0), l.PID()
	return o
}

// measureOwn makes one run of requests against a separate server.
func measureOwn(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) (err error) {
		l, err := launch(ctx, o, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.end()) }()
		return measure(ctx, l.aim(o), clk, out)
	})
}

// inFolder calls f with a new folder in --dir, which is gone when it returns.
func inFolder(o Options, f func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(o.Dir, o.Workload)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Workload, err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}
