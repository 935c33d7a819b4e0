package clock

import (
	"sync/atomic"
	"time"
)

// Running is the time during which a loop could hear others: monotonic time without the
// pauses of the process, or of the loop itself. Whoever judges another by its silence
// measures the silence in it, because a peer cannot be heard by a process that does not run:
// its messages wait in the socket.
//
// The loop calls Advance each time it comes round, at least once per interval when it is not
// held up. Of a longer gap one interval counts. Of a gap longer than two intervals nothing
// counts, so that the loop comes round once more, with what waited in the sockets read,
// before anybody is judged; but at most once per interval of running time, so that a loop
// that is late every time still judges, at least at half the pace of its rounds.
//
// Nothing that safety rests on may use it: a lease runs on Clock.Mono (R5). A promise may
// last longer by it, never shorter, since it is never ahead of the monotonic time.
//
// Advance is called by one goroutine at a time, Time by any.
type Running struct {
	interval time.Duration
	time     atomic.Int64

	begun bool
	// last is the monotonic time of the last Advance. forgiven is the running time at which a
	// gap last counted nothing.
	last, forgiven time.Duration
}

// NewRunning returns the running time of a loop that comes round at least once per interval.
func NewRunning(interval time.Duration) *Running { return &Running{interval: interval} }

// Advance takes the monotonic time of this round and returns the running time, which begins
// with the monotonic time of the first round.
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

// Time is the running time of the newest round; zero before the first.
func (r *Running) Time() time.Duration { return time.Duration(r.time.Load()) }
