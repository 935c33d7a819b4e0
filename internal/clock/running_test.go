package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A loop that comes round in time runs on monotonic time. A pause counts nothing, however
// long; the round after it counts again.
func TestRunningLeavesOutPauses(t *testing.T) {
	const interval = 100 * time.Millisecond
	r := NewRunning(interval)
	require.Zero(t, r.Time())
	now := 5 * time.Second
	require.Equal(t, now, r.Advance(now), "it begins with the monotonic time")
	for range 50 {
		now += 37 * time.Millisecond
		require.Equal(t, now, r.Advance(now))
	}
	before := r.Time()
	require.Equal(t, before, r.Advance(now+time.Hour))
	require.Equal(t, before+30*time.Millisecond, r.Advance(now+time.Hour+30*time.Millisecond))
	require.Equal(t, before+130*time.Millisecond, r.Advance(now+time.Hour+180*time.Millisecond), "a round that is a little late counts one interval")
	require.Equal(t, before+130*time.Millisecond, r.Time())
}

// A loop that is late every time, or every other time, still gets on: by half an interval for
// each late round at least. It is never ahead of the monotonic time.
func TestRunningOfASlowLoopGoesOn(t *testing.T) {
	const interval = 100 * time.Millisecond
	for name, gaps := range map[string][]time.Duration{
		"every round": {300 * time.Millisecond},
		"every other": {300 * time.Millisecond, time.Microsecond},
		"at times":    {time.Second, 50 * time.Millisecond, 70 * time.Millisecond},
		"very":        {10 * time.Second, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, now, late := NewRunning(interval), time.Duration(0), 0
			r.Advance(now)
			for i := range 1000 {
				now += gaps[i%len(gaps)]
				if gaps[i%len(gaps)] > 2*interval {
					late++
				}
				require.LessOrEqual(t, r.Advance(now), now)
			}
			require.GreaterOrEqual(t, r.Time(), time.Duration(late/2)*interval)
		})
	}
}
