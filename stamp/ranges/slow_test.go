package ranges

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type waits struct{ i int }

func (waits) Evaluate(*Tx) error { return nil }

type makesRoom struct{ waits }

func (makesRoom) Reclaims() {}

// While a range is slowed only commands that make room are taken, in order, at most as many as a group has; the others
// stay in order.
func TestSlowedTakesWhatMakesRoom(t *testing.T) {
	var r Range
	for i := range 2 * groupCommands {
		r.queue = append(r.queue, &waiter{cmd: waits{i}}, &waiter{cmd: makesRoom{waits{i}}})
	}
	require.Len(t, r.takeQueue(false), groupCommands)
	taken := r.takeQueue(true)
	require.Len(t, taken, groupCommands)
	for i, w := range taken {
		require.Equal(t, makesRoom{waits{groupCommands/2 + i}}, w.cmd)
	}
	next := groupCommands / 2
	for _, w := range r.queue {
		if c, ok := w.cmd.(waits); ok {
			require.Equal(t, next, c.i)
			next++
		}
	}
	require.Equal(t, 2*groupCommands, next)
	require.Len(t, r.takeQueue(true), groupCommands/2, "those beyond the first group")
	require.Empty(t, r.takeQueue(true))
	require.Len(t, r.queue, 2*groupCommands-groupCommands/2)
}

// The time is not closed while nothing more can be proposed: the command would wait, with another one in each interval.
func TestNoTimeIsClosedBehindGroupsInFlight(t *testing.T) {
	b := newBench(t)
	b.r.o.CloseInterval = time.Second
	now := time.Hour
	b.r.inflight = make([]*group, inflightMax)
	b.r.closeByTime(now)
	require.Zero(t, b.r.lastClosed)
	b.r.inflight = b.r.inflight[1:]
	b.r.closeByTime(now)
	require.Equal(t, now, b.r.lastClosed)
	b.r.inflight = nil
}

// Waits add up, so that what is written in a time is what Slow allows, whatever the groups are like; only a tick's
// worth of time without commands counts for later ones. What is not to be slowed does not wait.
func TestSlowAddsUp(t *testing.T) {
	each := 10 * time.Millisecond
	r := Range{o: Options{Slow: func(bytes int) time.Duration { return time.Duration(bytes) * each }}}
	now := time.Hour
	for range 100 {
		for now < r.slowUntil {
			now += 3 * each // The next pass.
		}
		r.slow(3, now)
	}
	require.InDelta(t, float64(time.Hour+300*each), float64(now), float64(slowCredit+3*each))
	now += time.Hour
	groups := 0
	for ; now >= r.slowUntil; groups++ {
		r.slow(1, now)
	}
	require.EqualValues(t, slowCredit/each+1, groups)

	until := r.slowUntil
	r.o.Slow = func(int) time.Duration { return 0 }
	r.slow(1000, now)
	require.Equal(t, until, r.slowUntil)
	r.o.Slow = nil
	r.slow(1000, now)
	require.Equal(t, until, r.slowUntil)
}
