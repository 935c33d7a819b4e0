package replica

import (
	"slices"
	"time"

	"antipode/geo"
)

// A follower promises its leader to let nobody else lead for ElectionTicks from each word
// of it on: leases count on that (R5). By the ticks of another node, which come up to one
// later, the promise has run out one tick after that. Then the followers stand in turn, far
// enough apart that one that is there and may win leads before the next one stands: two that
// stand at once split the votes. Raft's own randomized timer is not used, because its
// randomness cannot be injected.

// turnTicks is how many ticks lie between two turns: above a round of votes, which are
// synced to disk.
const turnTicks = 3

// resetElection begins to wait again. Where no leader is known it is for a drawn time, as
// after an election that nobody won.
func (r *Replica) resetElection() {
	r.elapsed = 0
	switch {
	case r.fresh: // The first election of a stamp need not wait: nobody holds a lease.
		r.drawn = 1 + r.o.Rand.IntN(r.o.ElectionTicks)
	case r.rn == nil: // Just started: see quiet.
		r.drawn = r.promised(0)
	default:
		r.drawn = r.o.ElectionTicks/2 + r.o.Rand.IntN(r.o.ElectionTicks)
	}
}

// promised is after how many ticks without a word of a leader the replica stands; lead is 0
// for one that it does not know.
func (r *Replica) promised(lead geo.ReplicaID) int {
	return r.o.ElectionTicks + 1 + turnTicks*r.members.turn(r.o.ID, lead, int(r.o.Range))
}

// stands reports whether it is time to stand for election.
func (r *Replica) stands(now time.Duration) bool {
	if r.quiet(now) {
		return false
	}
	lead := geo.ReplicaID(r.rn.BasicStatus().Lead)
	if lead == 0 {
		return r.elapsed >= r.drawn
	}
	return r.elapsed > r.o.ElectionTicks && r.elapsed >= r.promised(lead)
}

// turn is which of the voters beside lead id is, from 0. Each range begins with another
// one, so that the ranges of a node that is gone come to different nodes.
func (m Members) turn(id, lead geo.ReplicaID, rotate int) int {
	voters := slices.DeleteFunc(m.Voters(), func(v Member) bool { return v.ID == lead })
	i := slices.IndexFunc(voters, func(v Member) bool { return v.ID == id })
	if i < 0 {
		return len(voters)
	}
	return (i + rotate) % len(voters)
}

// quiet is the time after a restart in which the replica neither votes nor stands:
// a leader may hold a lease on what it promised before (R5).
func (r *Replica) quiet(now time.Duration) bool {
	return !r.fresh && now-r.started < time.Duration(r.o.ElectionTicks)*r.o.Tick
}

// Tick advances Raft's time by one tick. The scheduler calls it at most once a
// pass and never to catch up: a lease counts on ticks being no shorter than Tick.
func (r *Replica) Tick(now time.Duration) {
	if r.lost != nil {
		return
	}
	if r.IsLeader() {
		r.rn.Tick()
		r.inSync.update(r.rn, now, r.ran(now))
		return
	}
	r.rn.TickQuiesced()
	r.elapsed++
	if r.stands(now) {
		r.resetElection()
		if err := r.rn.Campaign(); err != nil {
			r.o.Logger.Warn("cannot stand for election", "range", r.o.Range, "error", err)
		}
	}
}
