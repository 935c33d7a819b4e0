package ranges

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/internal/invariants"
	"antipode/stamp/kv"
)

// pendingRead waits for a confirmed lease.
type pendingRead struct{ done func(error) }

// renewLease starts a round when somebody waits for one, or when readers keep
// coming and less than half of the lease is left.
func (r *Range) renewLease(now time.Duration) {
	until := r.replica.Lease()
	r.leaseUntil.Store(int64(until))
	r.mu.Lock()
	waiting := len(r.reads) > 0
	r.mu.Unlock()
	stale := until-now < r.o.LeaseLength/leaseRenewBelow
	if waiting && until <= now || r.renew.Load() && stale {
		r.renew.Store(false)
		r.replica.ReadIndex(now)
	}
}

// leaseClock is the time to compare a lease with. Whoever answers under a lease calls it
// after the state that the answer rests on was read, and after the question was taken: a
// lease that holds then proves that until then no other leader had committed anything (R5).
// What happens between the call and the answer does no harm. The time at which the pass
// began proves nothing: see answerUnderLease.
func (r *Range) leaseClock(passBegan time.Duration) time.Duration {
	if invariants.Planted(invariants.LeaseOfPassBegin) {
		return passBegan
	}
	return r.o.Clock.Mono()
}

// serveReads lets the waiting reads go once the lease holds, or fails them when
// this replica does not lead.
func (r *Range) serveReads(passBegan time.Duration) {
	leading := r.leading.Load()
	r.mu.Lock()
	reads := r.reads
	r.reads = nil
	r.mu.Unlock()
	if len(reads) == 0 {
		return
	}
	if leading {
		if now := r.leaseClock(passBegan); r.replica.Lease() <= now {
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

// held reports whether the lease that ran until a time read before is still held, and
// asks for a renewal in time. So what happened in between happened under it: a lease
// that only began meanwhile does not count.
func (r *Range) held(until int64) bool {
	left := time.Duration(until) - r.o.Clock.Mono()
	if left < r.o.LeaseLength/leaseRenewBelow && !r.renew.Swap(true) {
		r.o.Wake()
	}
	return invariants.Planted(invariants.VoidLease) || left > 0 && r.leaseUntil.Load() >= until && r.leading.Load()
}

// Confirm calls done with nil once this replica is known to lead and its applied
// state holds everything acknowledged before the call; with ErrNotLeader otherwise.
func (r *Range) Confirm(done func(error)) {
	if !r.leading.Load() {
		done(ErrNotLeader)
		return
	}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		done(ErrNotLeader)
		return
	}
	r.reads = append(r.reads, pendingRead{done})
	r.mu.Unlock()
	r.o.Wake()
}

// Read calls f with the newest state, in which everything acknowledged before the
// call is seen. The lease is checked after f (R5); f may run again, and does for ever if
// it takes longer than a lease. For more than one key f takes a snapshot, and what takes
// long reads it afterwards. Errors beside those of f: ErrNotLeader, also where ctx ends
// before it is known that this replica leads.
func (r *Range) Read(ctx context.Context, f func(s State) error) error {
	for {
		if until := r.leaseUntil.Load(); until > 0 && r.leading.Load() {
			err := f(State{r})
			if r.held(until) {
				return err
			}
		}
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
	}
}

// State is the applied state of a range as a query sees it.
type State struct{ r *Range }

// Get implements kv.Getter on the newest state.
func (s State) Get(key []byte) ([]byte, bool, error) { return s.r.o.State.Get(key) }

// Version implements kv.Versioned.
func (s State) Version() uint64 { return s.r.Machine.version.Load() }

// SyncTimes returns the sync times of an account's streams from a source range: see
// Machine.SyncTimes.
func (s State) SyncTimes(src Source, a geo.Account) (SyncTimes, bool) {
	return s.r.Machine.SyncTimes(src, a)
}

// Progress returns how far the streams of a source are: see Machine.Progress.
func (s State) Progress(src Source) Progress { return s.r.Machine.Progress(src) }

// Snapshot returns a view of one moment. Close it.
func (s State) Snapshot() interface {
	kv.Reader
	Close() error
} {
	return s.r.o.State.NewSnapshot()
}

// State returns the newest applied state of this replica, without any promise that
// it still leads.
func (r *Range) State() State { return State{r} }
