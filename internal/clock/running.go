package clock

import (
	"sync/atomic"
	"time"
)

// Running is the time during which a loop could receive messages: monotonic time without the
// pauses of the process or of the loop. Timeouts for silent peers are measured in it, because a
// process that does not run receives nothing: the messages wait in its sockets.
//
// The loop calls Advance in each round, at least once per interval unless it is delayed. A longer
// gap counts as one interval. A gap longer than two intervals does not count. So the loop runs one
// more round, and reads what waited in the sockets, before a timeout ends. This happens at most
// once per interval of running time, so that timeouts end, at half the pace or faster, even if
// every round is late.
//
// Safety must not depend on it: leases use Clock.Mono (R5). It is never ahead of the monotonic
// time, so a promise measured in it may last longer, never shorter.
//
// One goroutine at a time may call Advance. Time may be called concurrently.
type Running struct {
	interval time.Duration
	time     atomic.Int64

	begun bool
	// last is the monotonic time of the last Advance. forgiven is the running time at which a
	// gap last counted nothing.
	last, forgiven time.Duration
}

// NewRunning returns the running time of a loop with at least one round per interval.
func NewRunning(interval time.Duration) *Running { return &Running{interval: interval} }

// Advance is called with the monotonic time of a round and returns the running time. The running
// time of the first round is its monotonic time.
func (r *Running) Advance(now time.Duration) time.Duration {
	ran := r.Time()
	gap := now - r.last
	switch {
	case !r.begun:
		r.begun = true
		ran, r.forgiven = now, now-r.interval
	case gap > 2*r.interval && ran-r.forgiven >= r.interval:
		r.forgiven = ran
	default:
		ran += min(gap, r.interval)
	}
	r.last = now
	r.time.Store(int64(ran))
	return ran
}

// Time is the running time of the last round, zero before the first.
func (r *Running) Time() time.Duration { return time.Duration(r.time.Load()) }
