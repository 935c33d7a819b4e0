package ranges

import (
	"time"

	"antipode/stamp/room"
)

// slowCredit is how much of the time in which commands need not have waited counts for those that follow: passes of the
// scheduler come as seldom as its ticks.
const slowCredit = 100 * time.Millisecond

// slow has the next commands wait for a group that was proposed, as long as Options.Slow says. Commands that make room
// do not wait, nor do those that waited once evaluate takes them: nothing waits for longer than one such time for each
// group before it.
func (r *Range) slow(bytes int, now time.Duration) {
	if r.o.Slow == nil {
		return
	}
	if wait := r.o.Slow(bytes); wait > 0 {
		r.slowUntil = max(r.slowUntil, now-slowCredit) + wait
	}
}

// takeReclaimers takes the commands that make room; the others stay in order. The caller holds mu.
func (r *Range) takeReclaimers() (batch []*waiter) {
	var rest []*waiter
	for _, w := range r.queue {
		if accepts(w.cmd, room.Bare, false) && len(batch) < groupCommands {
			batch = append(batch, w)
		} else {
			rest = append(rest, w)
		}
	}
	r.queue = rest
	return batch
}
