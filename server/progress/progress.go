// Package progress reports to people, every few seconds, what a long operation waits for, so
// that a slow machine does not look like a program that hangs.
package progress

import (
	"context"
	"fmt"
	"time"

	"antipode/internal/clock"
)

// interval is the time between two reports.
const interval = 5 * time.Second

// Report calls say every interval until ctx ends, with what waiting returns and how long the
// operation has lasted. It does not call say if waiting returns "".
func Report(ctx context.Context, c clock.Clock, waiting func(context.Context) string, say func(what string, lasted time.Duration)) {
	began := c.Mono()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if what := waiting(ctx); what != "" && ctx.Err() == nil {
			say(what, c.Mono()-began)
		}
	}
}

// During runs Report while f runs, and returns the result of f.
func During(ctx context.Context, c clock.Clock, waiting func(context.Context) string, say func(what string, lasted time.Duration), f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Report(ctx, c, waiting, say)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	return f()
}

// Line formats a report as one line.
func Line(what string, lasted time.Duration) string {
	return fmt.Sprintf("waiting: %s (%ds)", what, int(lasted.Seconds()))
}
