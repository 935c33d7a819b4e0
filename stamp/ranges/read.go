package ranges

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/cursor"
	"antipode/stamp/kv"
)

// pendingRead is a read that waits for a lease, or for a round that began after the read.
type pendingRead struct {
	done func(error)
	// round is the number of the first round that began after the read, zero while the
	// scheduler has not seen it.
	round uint64
}

// renewLease starts a round when somebody waits for one, or when readers keep
// coming and less than half of the lease is left.
func (r *Range) renewLease(now time.Duration) {
	until := r.replica.Lease()
	r.leaseUntil.Store(int64(until))
	begun, _ := r.replica.Rounds()
	r.mu.Lock()
	waiting := len(r.reads) > 0
	for i := len(r.reads) - 1; i >= 0 && r.reads[i].round == 0; i-- {
		r.reads[i].round = begun + 1
	}
	r.mu.Unlock()
	stale := until-now < r.o.LeaseLength/leaseRenewBelow
	if waiting && until <= now || r.renew.Load() && stale {
		r.renew.Store(false)
		r.replica.ReadIndex(now)
	}
}

// leaseClock returns the time to compare a lease with (R5). The order is: the question is taken,
// the state is read, leaseClock is called, the answer is sent. A lease that is still valid at the
// time of the call proves that no other leader had committed anything when the state was read.
// A lease that ends between the call and the answer does no harm. The time at which the pass
// began proves nothing: see answerUnderLease.
func (r *Range) leaseClock(passBegan time.Duration) time.Duration {
	if plantedbugs.Planted(plantedbugs.LeaseOfPassBegin) {
		return passBegan
	}
	return r.o.Clock.Mono()
}

// serveReads completes the waiting reads if the lease holds, or those before a round that was
// answered. It fails them if this replica does not lead.
func (r *Range) serveReads(passBegan time.Duration) {
	leading := r.Leading()
	r.mu.Lock()
	reads := r.reads
	r.reads = nil
	r.mu.Unlock()
	if len(reads) == 0 {
		return
	}
	if leading && r.replica.Behind() {
		r.mu.Lock()
		r.reads = append(reads, r.reads...)
		r.mu.Unlock()
		return
	}
	if leading {
		now := r.leaseClock(passBegan)
		if r.replica.Lease() <= now {
			reads = r.serveConfirmed(reads)
			r.mu.Lock()
			r.reads = append(reads, r.reads...)
			r.mu.Unlock()
			r.renewLease(now)
			return
		}
	}
	for _, p := range reads {
		if leading {
			p.done(nil)
		} else {
			p.done(ErrNotLeader)
		}
	}
}

// AnswerReads completes the reads that waited because this leader was behind what its followers may show. The
// scheduler calls it once it has applied, in the pass that began at passBegan.
func (r *Range) AnswerReads(passBegan time.Duration) {
	if r.Leading() && !r.replica.Behind() {
		r.serveReads(passBegan)
	}
}

// serveConfirmed completes the reads that a round confirmed, and returns the others. reads are
// in the order of their rounds; those that the scheduler has not seen yet, with round 0, are
// last.
func (r *Range) serveConfirmed(reads []pendingRead) []pendingRead {
	_, confirmed := r.replica.Rounds()
	for len(reads) > 0 && reads[0].round != 0 && reads[0].round <= confirmed {
		reads[0].done(nil)
		reads = reads[1:]
	}
	return reads
}

// held reports whether the lease that ended at until, as read before, is still held: then
// everything since that read happened under it. A lease that began only since does not count.
// held also asks for a renewal in time.
func (r *Range) held(until int64) bool {
	left := time.Duration(until) - r.o.Clock.Mono()
	if left < r.o.LeaseLength/leaseRenewBelow && !r.renew.Swap(true) {
		r.o.Wake()
	}
	return plantedbugs.Planted(plantedbugs.VoidLease) || left > 0 && r.leaseUntil.Load() >= until && r.Leading()
}

// Confirm calls done with nil once this replica is known to lead and its applied
// state holds everything acknowledged before the call; with ErrNotLeader otherwise.
func (r *Range) Confirm(done func(error)) {
	if !r.Leading() {
		done(ErrNotLeader)
		return
	}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		done(ErrNotLeader)
		return
	}
	r.reads = append(r.reads, pendingRead{done: done})
	r.mu.Unlock()
	r.o.Wake()
}

// Read calls f with the newest state, which contains everything acknowledged before the call.
// With a lease, f runs at once and the lease is checked after f (R5); otherwise f runs after a
// round that began after the call, see Confirm. f may run again. To read more than one key f
// takes a snapshot, and a long read of it comes after Read. Errors beside those of f:
// ErrNotLeader, also if ctx ends before it is known that this replica leads.
func (r *Range) Read(ctx context.Context, f func(s State) error) error {
	for {
		if held, err := r.ReadLeased(f); held {
			return err
		}
		replaced := r.Machine.replaced.Load()
		confirmed := make(chan error, 1)
		r.Confirm(func(err error) { confirmed <- err })
		select {
		case err := <-confirmed:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ErrNotLeader
		}
		err := f(State{r})
		// The replica may have been deposed since, found lost, and replaced by an empty state.
		if r.Machine.replaced.Load() == replaced {
			return err
		}
	}
}

// ReadLeased is Read for a leader with a lease, which waits for nothing. held is false for any other one, and where the
// lease ended meanwhile: f may have run, for nothing.
func (r *Range) ReadLeased(f func(s State) error) (held bool, err error) {
	until := r.leaseUntil.Load()
	if until <= 0 || !r.Leading() || r.readers.Load().Behind() {
		return false, nil
	}
	err = f(State{r})
	return r.held(until), err
}

// State is the applied state of a range as a query sees it.
type State struct{ r *Range }

// Get implements kv.Getter on the newest state.
func (s State) Get(key []byte) ([]byte, bool, error) { return s.r.o.State.Get(key) }

// Version implements kv.Versioned.
func (s State) Version() kv.Version { return kv.Version(s.r.Machine.version.Load()) }

// Progress returns how far the streams of a source range are: see Machine.Progress.
func (s State) Progress(src geo.SourceRange, a geo.Account) cursor.Progress {
	return s.r.Machine.Progress(src, a)
}

// Received returns the greatest time committed here of a source range: see Machine.Received.
func (s State) Received(src geo.SourceRange) geo.Timestamp { return s.r.Machine.Received(src) }

// Snapshot returns a view of one moment. Close it.
func (s State) Snapshot() kv.Snapshot { return s.r.o.State.NewSnapshot() }

// Snapshot returns a state of a range in which everything acknowledged before the call is seen.
// Close it. Reads that may take longer than a lease go through it: in Reader.Read they would run
// again whenever the lease ended meanwhile.
func Snapshot(ctx context.Context, from Reader, r geo.RangeID) (kv.Snapshot, error) {
	var snap kv.Snapshot
	err := from.Read(ctx, r, func(s State) error {
		old := snap
		snap = s.Snapshot()
		if old != nil { // The lease had ended: this snapshot is a later one.
			return old.Close()
		}
		return nil
	})
	if err != nil && snap != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, err
}

// State returns the newest applied state of this replica, without any promise that
// it still leads.
func (r *Range) State() State { return State{r} }
