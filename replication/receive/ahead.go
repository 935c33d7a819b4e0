package receive

import (
	"time"

	"antipode/geo"
	"antipode/stamp/change"
)

// A time of the source that is further ahead of the clock here than geo.ClockOffMax is not taken
// (R6): the clock of one of the two is wrong, and what is taken is a lower bound of all later times
// here, for good. The record or the closed record waits until the clock here has reached it. If
// that takes long it is tried again every aheadRetryMax, since either clock may be corrected, and an unplanned failover takes
// it (R20).

// aheadRetryMax is how long something that waits for the clock is not tried again, at most: less than a failover waits for
// what is here.
const aheadRetryMax = 500 * time.Millisecond

// closedAhead is a closed record that waits for the clock. It is kept, since the full one that
// would be pulled in its place has a later time: it would never be taken while the source's clock is
// a little too far ahead. One is kept: those that follow are dropped, and the full one is
// pulled once this one is taken.
type closedAhead struct {
	closed *change.Closed
	at     time.Duration // to be tried again
}

// resolveClosed acts on the outcome of the closed record of a batch.
func (rr *rangeReceiver) resolveClosed(b *Batch, now time.Duration) {
	if b.ClosedAhead > 0 {
		// Of two the one that can be taken first.
		if w := rr.ahead; w == nil || b.Closed.T <= w.closed.T {
			rr.ahead = &closedAhead{b.Closed, now + min(b.ClosedAhead, aheadRetryMax)}
		}
		rr.needFull = true
		return
	}
	// A closed record that did not join shows that the source's chain is another one by now.
	if w := rr.ahead; w != nil && (!b.ClosedTaken || b.Closed.T >= w.closed.T) {
		rr.ahead = nil
	}
	if !b.ClosedTaken {
		rr.needFull = true
	}
}

// retryClosed tries a waiting closed record again when its time has come.
func (rr *rangeReceiver) retryClosed(now time.Duration) {
	if w := rr.ahead; w != nil && now >= w.at && !rr.standing {
		w.at = now + aheadRetryMax // It may get lost on the way.
		rr.takeClosed(w.closed)
	}
}

// aheadAgain is how long after something waited for the clock the episode lasts: while the source's
// clock is only a little too far ahead, one thing after the other waits briefly.
const aheadAgain = 10 * time.Second

// reportAhead raises an alarm, once an episode, when something waits for the clock.
func (rr *rangeReceiver) reportAhead(now time.Duration) {
	waits := rr.ahead != nil || rr.pulls.ahead > 0
	rr.r.mu.Lock()
	until, did := rr.r.ahead[rr.src.Range]
	if waits {
		rr.r.ahead[rr.src.Range] = now + aheadAgain
	} else if now >= until {
		delete(rr.r.ahead, rr.src.Range)
	}
	rr.r.mu.Unlock()
	if waits && !did {
		rr.r.o.Alarm(AlarmClock)
		rr.r.o.Logger.Error("times of the source are ahead of the clock here; they wait, and Last Sync Time with them",
			"origin", rr.src.Origin, "range", rr.src.Range)
	}
}

// Ahead reports whether something of a source range waits, or waited some seconds ago, because its
// time is too far ahead of the clock here (R6). It may be called concurrently with Step.
func (r *Receiver) Ahead(id geo.RangeID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.ahead[id]
	return waits
}
