package replica

import (
	"encoding/binary"
	"time"

	"antipode/internal/plantedbugs"
)

// lease lets a leader answer reads without another round (R5). It begins at the send time of
// a confirmed ReadIndex round: after that time a quorum received a message of the leader, and
// it refuses votes to others for one election timeout. So no other leader can have committed
// anything before the lease ends.
type lease struct {
	// The lease holds in term, until a monotonic time.
	term  uint64
	until time.Duration
	// voidIn is a term in which no lease holds: see Transfer.
	voidIn uint64
	// pending: a round is under way, begun at pendingSince.
	pending      bool
	pendingSince time.Duration
	// begun counts the rounds that this replica began; confirmed is the number of the newest
	// one that a quorum answered.
	begun, confirmed uint64
}

// leaseLength is shorter than the election timeout by three ticks: a follower's
// first tick after our heartbeat may come at once, ours may be late by one, and clocks
// drift.
func (r *Replica) leaseLength() time.Duration {
	if plantedbugs.Planted(plantedbugs.LongLease) {
		return 10 * time.Duration(r.o.ElectionTicks) * r.o.Tick
	}
	return time.Duration(r.o.ElectionTicks-3) * r.o.Tick
}

// confirm takes the result of a ReadIndex round whose context is its send time.
func (r *Replica) confirm(rctx []byte) {
	if len(rctx) != 8 {
		return
	}
	sent := time.Duration(binary.LittleEndian.Uint64(rctx))
	if r.lease.pending && sent == r.lease.pendingSince {
		r.lease.confirmed = r.lease.begun
	}
	r.lease.pending = false
	_, term := r.Leader()
	if until := sent + r.leaseLength(); until > r.lease.until || r.lease.term != term {
		r.lease.until, r.lease.term = until, term
	}
}

// Lease returns the monotonic time until which reads may be served; zero if none may.
func (r *Replica) Lease() time.Duration {
	if !r.MayEvaluate() {
		return 0
	}
	if _, term := r.Leader(); term != r.lease.term || term == r.lease.voidIn {
		return 0
	}
	return r.lease.until
}

// Behind reports whether this leader has named a commit to its followers that is not applied here yet. They may have shown
// it, so that no read may be answered from the state here meanwhile, lease or not (R5). Safe for concurrent use.
func (r *Replica) Behind() bool { return r.behind.Load() }

// Rounds returns how many ReadIndex rounds this replica has begun, and the number of the
// newest one that a quorum answered. An answered round proves to every question from before it
// that this replica led after the question, even if the lease has ended since. If rounds take
// longer than a lease, this is the only proof there is.
func (r *Replica) Rounds() (begun, confirmed uint64) { return r.lease.begun, r.lease.confirmed }
