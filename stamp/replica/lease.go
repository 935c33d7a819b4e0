package replica

import (
	"encoding/binary"
	"time"

	"antipode/internal/plantedbugs"
)

// lease lets a leader answer reads without another round (R5). It runs from
// the send time of a confirmed ReadIndex round: a quorum received from the leader after
// that and drops votes for one election timeout, so no other leader can have committed
// before the lease ends.
type lease struct {
	term         uint64
	until        time.Duration
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

// Lease returns until when reads may be served, in monotonic time; zero for not
// at all.
func (r *Replica) Lease() time.Duration {
	if !r.MayEvaluate() {
		return 0
	}
	if _, term := r.Leader(); term != r.lease.term {
		return 0
	}
	return r.lease.until
}

// Rounds returns how many ReadIndex rounds this replica has begun, and the number of the
// newest one that a quorum answered. Who asked before a round began that was answered knows
// that this replica led after the question, even if the lease has ended since: where a round
// takes longer than a lease, answers rest on that alone.
func (r *Replica) Rounds() (begun, confirmed uint64) { return r.lease.begun, r.lease.confirmed }
