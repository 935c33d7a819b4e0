package clock

import (
	"context"
	"time"
)

// Loop runs a component that works in steps on one goroutine: a step when the last one asked
// for it, and when something calls Wake. Wake may be called concurrently.
type Loop struct {
	wake chan struct{}
	also func()
}

// NewLoop returns a loop. also is called by each Wake, for an owner that steps the component
// itself instead of calling Run; it may be nil.
func NewLoop(also func()) *Loop { return &Loop{wake: make(chan struct{}, 1), also: also} }

// Wake asks for a step soon. It does not wait.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if l.also != nil {
		l.also()
	}
}

// Run steps until ctx ends. step takes the monotonic time and returns after how long to step
// again at the latest. A receive from arrived, which may be nil, steps too; its sender waits
// for the step before it has ended.
func (l *Loop) Run(ctx context.Context, c Clock, arrived <-chan struct{}, step func(now time.Duration) time.Duration) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(step(c.Mono()))
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-arrived:
		case <-timer.C:
		}
	}
}
