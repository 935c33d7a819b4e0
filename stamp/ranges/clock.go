package ranges

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/skew"
)

// A leader gives times by its wall clock, and closed times are promises by it: one that is ten
// minutes ahead moves Last Sync Time into the future at both ends. So it evaluates only with a clock
// within geo.ClockOffMax of those of a quorum of the range's voters (R6):
//
//	Agreed   evaluates
//	Unsure   waits, for clockWait at most: just started, or its clock was just set. Then as Off
//	Off      answers kv.ErrBusy, commits no closed record, and transfers leadership to a voter
//	         whose clock is right
//
// A transfer that failed leaves the leader without a lease for the rest of its term (R5), and its reads wait. So it
// transfers leadership once more, whatever its clock, and also if nobody writes; meanwhile it evaluates, if its clock is
// right. Of a leader that leaves, stepDown transfers it.
//
// Of two voters that are up and disagree neither can know which one is right, so neither evaluates.
// Reads go on: they depend on no wall clock (R5).

// clockState is what a leader remembers of its clock.
type clockState struct {
	// unsure is true while the clock is unsure, since unsureSince in running time.
	unsure      bool
	unsureSince time.Duration
	// transferredAt is when it last tried to leave a term without a lease, in running time.
	transferredAt time.Duration
	// began is what the clock showed as it first served in this term.
	began time.Time
}

// transferPause lies between two transfers out of a term without a lease: during one, which takes up to
// an election timeout, nothing is proposed.
const transferPause = time.Second

// clockWait is how long commands wait for a measurement of the clock: one takes a round trip.
const clockWait = time.Second

// clockReason is the reason of a transfer because of the clock.
const clockReason = "because of the former leader's clock"

// clockUse is whether a leader may evaluate now.
type clockUse byte

const (
	clockServes clockUse = iota
	clockWaits
	clockRefuses
)

// checkClock returns the time at which to evaluate, and whether to.
func (r *Range) checkClock(passBegan time.Duration) (time.Time, clockUse) {
	if r.o.CompareClock == nil {
		return r.servesAt(r.o.Clock.Now())
	}
	c := r.o.CompareClock(r.voters(), passBegan)
	if c.Agreement == skew.Agreed {
		r.clock.unsure = false
		r.clockRefused.Store(false)
		return r.servesAt(c.Now)
	}
	if c.Agreement == skew.Unsure {
		ran := r.o.Running.Time()
		if !r.clock.unsure {
			r.clock.unsure, r.clock.unsureSince = true, ran
		}
		if ran-r.clock.unsureSince < clockWait {
			return c.Now, clockWaits
		}
	}
	r.clockRefused.Store(true)
	r.transfer(c.Better, clockReason)
	return c.Now, clockRefuses
}

// servesAt has a leader evaluate with a clock that the voters agree with.
func (r *Range) servesAt(now time.Time) (time.Time, clockUse) {
	if r.clock.began.IsZero() {
		r.clock.began = now
	}
	return now, clockServes
}

// leaveVoidTerm has a voter lead in place of a leader that has no lease for the rest of its term: one whose clock is right,
// if this one's is not and there is one.
func (r *Range) leaveVoidTerm(passBegan time.Duration) {
	ran := r.o.Running.Time()
	if !r.replica.LeaseVoid() || r.Leaving() || r.o.CompareClock == nil || ran-r.clock.transferredAt < transferPause {
		return
	}
	r.clock.transferredAt = ran
	nodes := r.o.CompareClock(r.voters(), passBegan).Better
	if len(nodes) == 0 {
		nodes = r.voters()
	}
	r.transfer(nodes, clockReason)
}

// transfer asks a voter on one of the nodes to lead.
func (r *Range) transfer(nodes []geo.NodeID, reason string) {
	if to := r.replica.Transfer(nodes); to != 0 {
		r.leaseUntil.Store(0)
		if r.o.OnTransfer != nil {
			r.o.OnTransfer(to, reason)
		}
	}
}

// voters are the nodes of the range's voters.
func (r *Range) voters() []geo.NodeID {
	var nodes []geo.NodeID
	for _, m := range r.Machine.Members().Voters() {
		nodes = append(nodes, m.Node)
	}
	slices.Sort(nodes)
	return nodes
}

// ClockRefused reports whether this replica leads and does not evaluate because of its clock (R6).
func (r *Range) ClockRefused() bool { return r.clockRefused.Load() }
