package services

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
)

func newTestScans() *Scans {
	s := NewScans(clock.NewManual(time.Unix(0, 0)))
	s.slots, s.slotsMax = 1, 1
	return s
}

// While nothing waits for a processor scans run on all of them. Once something does, a lent slot is given back after its
// slice, and none is lent until that is over.
func TestScansBorrowTheFreeHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestScans()
		s.slotsMax = 3
		var crowded atomic.Bool
		s.crowded = crowded.Load
		steps := make(chan int)
		var scans sync.WaitGroup
		for range 5 {
			b := s.Begin(t.Context(), "one")
			scans.Go(func() {
				defer b.End()
				for work, more := scanFreeWork, true; more; work, more = <-steps {
					if _, err := b.Spend(t.Context(), work); err != nil {
						return
					}
				}
			})
		}
		running := func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.running
		}
		for i, x := range []struct {
			crowded      bool
			work, expect int
		}{
			{false, scanSliceWork, 3},
			{true, scanLookEvery, 3}, // A slot is lent for a slice.
			{true, scanSliceWork, 2},
			{true, scanSliceWork, 1},
			{true, scanSliceWork, 1}, // Their own half they keep.
			{false, scanSliceWork, 3},
		} {
			require.Positive(t, running())
			crowded.Store(x.crowded)
			steps <- x.work
			require.Equal(t, x.expect, running(), "step %d", i)
		}
		close(steps)
		scans.Wait()
		require.Zero(t, s.running)
		require.Empty(t, s.turns)
	})
}

// Goroutines that always run or could run are a crowd, if they are more than the processors.
func TestManyActiveGoroutinesAreACrowd(t *testing.T) {
	var end atomic.Bool
	var busy sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !end.Load() {
			}
		})
	}
	s := NewScans(clock.System{})
	crowded := s.crowded()
	end.Store(true)
	busy.Wait()
	require.True(t, crowded)
	require.Equal(t, runtime.GOMAXPROCS(0), s.slotsMax)
	require.Equal(t, max(1, s.slotsMax/2), s.slots)
}

func BenchmarkCrowded(b *testing.B) {
	s := NewScans(clock.System{})
	for b.Loop() {
		s.crowded()
	}
}

// A cheap page never waits for costly ones. Costly pages run one at a time, and an
// account with many of them gives another one every second turn.
func TestScansTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestScans()
		first := s.Begin(t.Context(), "many")
		spend := func(b *Budget, work int) {
			more, err := b.Spend(t.Context(), work)
			require.True(t, more)
			require.NoError(t, err)
		}
		spend(first, scanFreeWork) // It holds the only slot.
		cheap := s.Begin(t.Context(), "one")
		spend(cheap, scanFreeWork-1)
		cheap.End()

		turns := make(chan geo.Account, 8)
		for _, a := range []geo.Account{"many", "many", "many", "one", "one"} {
			b := s.Begin(t.Context(), a)
			go func() {
				spend(b, scanFreeWork)
				turns <- a
				b.End()
			}()
			synctest.Wait() // So that they wait in this order.
		}
		require.Empty(t, turns)
		first.End()
		first.End() // Does nothing.
		var got []geo.Account
		for range 5 {
			got = append(got, <-turns)
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(t, []geo.Account{"many", "one", "many", "one", "many"}, got)
		require.Zero(t, s.running)
		require.Empty(t, s.waiting)
		require.Empty(t, s.turns)
	})
}

// A costly page lets others have their turn after a slice, and goes on after them.
func TestScansAreSliced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestScans()
		before := s.Begin(t.Context(), "before")
		_, err := before.Spend(t.Context(), scanFreeWork)
		require.NoError(t, err)
		var order []geo.Account
		done := make(chan struct{}, 2)
		for _, a := range []geo.Account{"one", "two"} {
			b := s.Begin(t.Context(), a)
			go func() {
				defer func() { b.End(); done <- struct{}{} }()
				for range 3 * scanSliceWork / scanLookEvery {
					if _, err := b.Spend(t.Context(), scanLookEvery); err != nil {
						return
					}
					if len(order) == 0 || order[len(order)-1] != a {
						order = append(order, a) // The one slot guards it.
					}
				}
			}()
		}
		synctest.Wait() // Both wait now.
		before.End()
		<-done
		<-done
		require.GreaterOrEqual(t, len(order), 4, "%v", order)
		require.Zero(t, s.running)
	})
}

// A page whose time is over while it waits for its turn ends with what it has.
func TestScansWaitWithinBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestScans()
		first := s.Begin(t.Context(), "one")
		_, err := first.Spend(t.Context(), scanFreeWork)
		require.NoError(t, err)
		began := time.Now()
		second := s.Begin(t.Context(), "two")
		more, err := second.Spend(t.Context(), scanFreeWork)
		require.NoError(t, err)
		require.False(t, more)
		require.Equal(t, scanTimeMax, time.Since(began))
		second.End()
		first.End()
		require.Zero(t, s.running)
	})
}

// A scan whose client leaves while it waits is no longer waited for, and takes no slot.
func TestScansWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestScans()
		first := s.Begin(t.Context(), "one")
		_, err := first.Spend(t.Context(), scanFreeWork)
		require.NoError(t, err)
		gone, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		second := s.Begin(gone, "one")
		go func() {
			_, err := second.Spend(gone, scanFreeWork)
			ended <- err
		}()
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-ended, context.Canceled)
		second.End()
		require.Empty(t, s.turns)
		first.End()
		require.Zero(t, s.running)

		// Granted in the moment in which it was given up: the slot goes on.
		s.running = 1
		s.withdraw("one", make(chan struct{}))
		require.Zero(t, s.running)
		require.False(t, slices.Contains(s.turns, "one"))
	})
}
