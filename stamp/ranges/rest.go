package ranges

import (
	"sync/atomic"
	"time"

	"antipode/geo"
)

// A range at rest that the other location asks, Rest, leaves out closed records by time (DESIGN, "At rest"): who is going to
// show a Last Sync Time has one committed by Close. Every closed record is committed and shipped as ever, so that what it
// promises does not depend on any of this.
const (
	// restAfter is for how long a range has committed nothing but closed records when it is at rest.
	restAfter = time.Second
	// restHolds is how long after a question closed records are left out: several pauses between two questions.
	restHolds = 3 * time.Second
	// restClose is how often a range at rest closes all the same, so that a bus that carries nothing is noticed.
	restClose = 30 * time.Second
)

// resting is what a leader knows of its rest.
type resting struct {
	asked atomic.Bool
	// closed is the time of the last closed record of this term, 0 while a change is behind it or on its way. Set by each
	// pass of the scheduler.
	closed atomic.Uint64
	// out: closed records are left out.
	out atomic.Bool

	// Below: scheduler only. last is the time of what was applied last in this term, if that is a closed record.
	last geo.Timestamp
	// moved: a change was applied since the last pass. movedAt is when the last one was, until how long closed records are
	// left out; both monotonic.
	moved          bool
	movedAt, until time.Duration
}

// Rest returns the time of the range's last closed record if nothing has been committed behind it and nothing is under way, 0
// otherwise; and has closed records left out from now on for a while, as long as that is so. The caller is the location
// that receives the range. It may be called concurrently.
func (r *Range) Rest() (geo.Incarnation, geo.Timestamp) {
	r.resting.asked.Store(true)
	return r.Machine.Incarnation(), geo.Timestamp(r.resting.closed.Load())
}

// Rests reports whether closed records are left out. It may be called concurrently.
func (r *Range) Rests() bool { return r.resting.out.Load() }

// applied takes what was applied in this term.
func (s *resting) applied(a Applied) {
	switch {
	case a.Changed: // Anything but closed records: what is sent of it, and who waits for a later one, is for others to know.
		s.last, s.moved = 0, true
	case a.Closed != 0:
		s.last = a.Closed
	}
}

// begin begins a term, or ends one.
func (s *resting) begin(now time.Duration) {
	s.last, s.moved, s.movedAt, s.until = 0, false, now, 0
	s.closed.Store(0)
	s.out.Store(false)
}

// followRest follows what a pass has applied.
func (r *Range) followRest(now time.Duration) {
	s := &r.resting
	if s.moved {
		s.moved, s.movedAt = false, now
	}
	if s.asked.Swap(false) {
		s.until = now + restHolds
	}
	s.out.Store(s.last != 0 && now < s.until && now-s.movedAt >= restAfter)
	if len(r.inflight) > 0 {
		s.closed.Store(0)
		return
	}
	s.closed.Store(uint64(s.last))
}

// rests reports whether closed records are left out.
func (r *Range) rests(now time.Duration) bool {
	return r.Rests() && now/restClose == r.lastClosed/restClose
}

// Close commits a closed record in a range that ships anything: nothing commits at or before its time (R12).
type Close struct {
	// T is its time, 0 if the range ships nothing.
	T geo.Timestamp
}

// Evaluate implements Command.
func (c *Close) Evaluate(tx *Tx) error {
	if c.T = 0; tx.r.Machine.Numbered() && !tx.r.Machine.Uncompared() {
		c.T = tx.ClosedAfter(0)
	}
	return nil
}

// Reclaims implements Reclaimer: closed records go on while the disk is nearly full, so that an idle range is not taken to be
// silent.
func (*Close) Reclaims() {}
