package ranges

import (
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// Fence says for how long a node may take its location to be the primary of the accounts whose gates say so (R21). A
// leader asks it when it evaluates a write of an account that has a copy, and again after the commit, just before the
// answer: the process may have stood still in between while the other location became the primary. Nothing that is
// durable is part of it. The zero value confirms nothing; a nil Fence confirms everything, for ranges without a
// second location. Methods may be called concurrently, and take no lock.
type Fence struct{ held atomic.Pointer[Confirmed] }

// Confirmed is what a Fence holds. It is not changed once it was given to Set.
type Confirmed struct {
	// Until is the monotonic time, which counts suspension (R5), at which it ends.
	Until time.Duration
	// Above are the accounts of which a higher epoch is known than the one with which they were asked for. A write under a
	// gate that is passed by it is refused, whatever Until is.
	Above map[geo.Account]geo.Epoch
}

// Set replaces what the fence holds.
func (f *Fence) Set(c Confirmed) { f.held.Store(&c) }

// Held returns what the fence holds. Above must not be changed.
func (f *Fence) Held() Confirmed {
	if c := f.held.Load(); c != nil {
		return *c
	}
	return Confirmed{}
}

// Confirms reports whether a write of an account under a gate may be acknowledged at the monotonic time now.
func (f *Fence) Confirms(a geo.Account, g change.Gate, now time.Duration) bool {
	if f == nil || plantedbugs.Planted(plantedbugs.EpochsUnconfirmed) {
		return true
	}
	c := f.held.Load()
	if c == nil || now >= c.Until {
		return false
	}
	return plantedbugs.Planted(plantedbugs.FormerUnfenced) || !g.PassedBy(c.Above[a]) // The zero epoch passes no gate.
}

// fenced is the account of a command whose answer needs a Fence, and the gate under which it was evaluated. The zero
// value needs none.
type fenced struct {
	account geo.Account
	gate    change.Gate
}

// Confirmed reports whether a write of an account that is primary here may be evaluated now (R21). The answer of the
// command that asks is given only if that still holds after the commit. An account without a copy needs nothing:
// nobody else could be its primary.
func (tx *Tx) Confirmed(a geo.Account) bool {
	gate := tx.Gate(a)
	if tx.r.o.Fence == nil || !gate.Fenced() {
		return true
	}
	if !tx.r.o.Fence.Confirms(a, gate, tx.passBegan) {
		return false
	}
	if tx.w != nil {
		tx.w.fenced = fenced{a, gate}
	}
	return true
}

// fenceClock returns the time to compare what a fence holds with, for answers in a pass that began at passBegan: see
// leaseClock. One reading serves all answers of a pass, since each is a system call.
func (r *Range) fenceClock(passBegan time.Duration) time.Duration {
	if r.o.Fence == nil {
		return passBegan
	}
	return r.o.Clock.Mono()
}

// confirms reports whether a command may be answered as it was evaluated.
func (r *Range) confirms(w *waiter, now time.Duration) bool {
	return w.fenced.account == "" || r.o.Fence.Confirms(w.fenced.account, w.fenced.gate, now)
}

// committedResult is the result of a command that is committed, given at the monotonic time now. Where the epochs are not
// confirmed any more, the commit may be one that is lost (R21).
func (r *Range) committedResult(w *waiter, now time.Duration) error {
	if !r.confirms(w, now) {
		return kv.ErrUnknown
	}
	return nil
}

// unchangedResult is the result of a command that changed nothing, given at the monotonic time now: what it was
// refused for may be older than what the other location has acknowledged.
func (r *Range) unchangedResult(w *waiter, now time.Duration) error {
	if !r.confirms(w, now) {
		return kv.ErrBusy
	}
	return w.err
}
