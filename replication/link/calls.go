package link

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrBusy is returned when the maximum number of calls waits for the other location.
var ErrBusy = errors.New("too many calls wait for the other location")

// Calls runs calls on goroutines of the link: some at once, some more that wait for
// their turn for up to CallTimeout, and none beyond those.
type Calls struct {
	l       *Link
	running chan struct{} // as many places as calls run at once
	open    atomic.Int64  // running and waiting
	openMax int64
}

// NewCalls returns Calls that run up to runningMax at once, and hold up to openMax, those included.
func NewCalls(l *Link, runningMax, openMax int) *Calls {
	return &Calls{l: l, running: make(chan struct{}, runningMax), openMax: int64(openMax)}
}

// Start runs f and passes its error to done: from another goroutine, or at once if f does not
// run.
func (c *Calls) Start(f func(ctx context.Context) error, done func(error)) {
	if c.open.Add(1) > c.openMax {
		c.open.Add(-1)
		done(ErrBusy)
		return
	}
	if !c.l.Go(func(ctx context.Context) {
		err := c.run(ctx, f)
		c.open.Add(-1)
		done(err)
	}) {
		c.open.Add(-1)
		done(ErrCut)
	}
}

func (c *Calls) run(ctx context.Context, f func(ctx context.Context) error) error {
	turn := time.NewTimer(CallTimeout)
	defer turn.Stop()
	select {
	case c.running <- struct{}{}:
	case <-turn.C:
		return ErrBusy
	case <-ctx.Done():
		return ErrCut
	}
	defer func() { <-c.running }()
	return f(ctx)
}
