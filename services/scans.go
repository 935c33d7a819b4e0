package services

import (
	"cmp"
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"

	"antipode/geo"
	"antipode/internal/clock"
)

// Bounds on the processor time of a scan.
const (
	// scanFreeWork is the work that a scan may do without a slot, in values read or compared: a
	// tenth of a millisecond. Most pages need no more.
	scanFreeWork = scanLookEvery
	// scanSliceWork is the work after which a costly scan gives its slot to the next one: about a
	// millisecond.
	scanSliceWork = 10 * scanLookEvery
)

// Scans shares the processors among the scans of a process. Half of the processors are for
// costly scans, whatever their number, so that point reads and writes find the other half.
// That half is lent to scans, for a slice, while nothing waits for a processor. Scans take turns
// in slices of about a millisecond, one account after the other, so that an account with many
// scans does not delay another one's. Methods may be called concurrently.
type Scans struct {
	// WorkMax bounds the work of a page, in values read or compared; zero means 20 million.
	// It is set before the first page.
	WorkMax int

	clock clock.Clock
	// slots is how many scans may always run, slotsMax how many with the lent half.
	slots, slotsMax int
	// crowded reports whether work waits for a processor.
	crowded func() bool

	// All below is guarded by mu.
	mu      sync.Mutex
	running int
	// waiting are the scans that wait for a slot, those of an account in the order in
	// which they came; turns are the accounts that have any, in the order of their turns.
	waiting map[geo.Account][]chan struct{}
	turns   []geo.Account
}

// NewScans returns the scans of a process.
func NewScans(c clock.Clock) *Scans {
	procs := runtime.GOMAXPROCS(0)
	return &Scans{
		clock: c, slots: max(1, procs/2), slotsMax: procs, crowded: func() bool { return active() > procs },
		waiting: map[geo.Account][]chan struct{}{},
	}
}

// active returns how many goroutines run or could run.
func active() int {
	states := [...]metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(states[:])
	return int(states[0].Value.Uint64() + states[1].Value.Uint64())
}

// Begin returns the budget of a page of an account that begins now. The caller calls End. With a
// nil Scans the budget shares nothing.
func (s *Scans) Begin(ctx context.Context, a geo.Account) *Budget {
	if s == nil {
		return NewBudget(ctx, clock.System{})
	}
	b := NewWorkBudget(ctx, s.clock, cmp.Or(s.WorkMax, scanWorkMax))
	b.scans, b.account, b.slice = s, a, scanFreeWork
	return b
}

// enter waits for a slot; its error is that of ctx. A scan that holds one gives it back, and waits
// for its turn in the same moment: one that came back later could find that another has had the
// turns of both.
func (s *Scans) enter(ctx context.Context, a geo.Account, holds bool) error {
	s.mu.Lock()
	if holds {
		s.running--
	}
	if len(s.turns) == 0 && s.free() {
		s.running++
		s.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	if len(s.waiting[a]) == 0 {
		s.turns = append(s.turns, a)
	}
	s.waiting[a] = append(s.waiting[a], ready)
	s.grant()
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		s.withdraw(a, ready)
		return ctx.Err()
	}
}

// leave gives a slot back.
func (s *Scans) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.grant()
}

// grant gives the free slots to the scans whose turn it is. The caller holds mu.
func (s *Scans) grant() {
	for len(s.turns) > 0 && s.free() {
		s.running++
		a := s.turns[0]
		s.turns = s.turns[1:]
		close(s.waiting[a][0])
		s.keep(a, s.waiting[a][1:])
		if len(s.waiting[a]) > 0 {
			s.turns = append(s.turns, a)
		}
	}
}

// free reports whether one more scan may run. The caller holds mu.
func (s *Scans) free() bool {
	return s.running < s.slots || s.running < s.slotsMax && !s.crowded()
}

// withdraw ends the wait of a scan that gave up. If the slot was granted in the same moment, the
// next scan gets it.
func (s *Scans) withdraw(a geo.Account, ready chan struct{}) {
	s.mu.Lock()
	i := slices.Index(s.waiting[a], ready)
	if i >= 0 {
		s.keep(a, slices.Delete(s.waiting[a], i, i+1))
		if len(s.waiting[a]) == 0 {
			s.turns = slices.DeleteFunc(s.turns, func(o geo.Account) bool { return o == a })
		}
	}
	s.mu.Unlock()
	if i < 0 {
		s.leave()
	}
}

// keep replaces the waiting scans of an account. The caller holds mu.
func (s *Scans) keep(a geo.Account, waiting []chan struct{}) {
	if len(waiting) == 0 {
		delete(s.waiting, a)
		return
	}
	s.waiting[a] = waiting
}
