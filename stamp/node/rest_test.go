package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// A range at rest that is asked commits no closed record but one in half a minute, and one whenever somebody looks. It closes as
// before once it is asked no more, or something is written (R12).
//
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestR12RestLeavesOutClosedRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		s := newSteppedWith(t, 1, 10, func(o *Options) {
			o.CloseInterval = func(geo.RangeID) time.Duration { return 200 * time.Millisecond }
			of := o.ID
			o.OnApplied = func(id geo.RangeID, a ranges.Applied) {
				if id == testRange && of == 1 && a.Closed != 0 {
					closed++
				}
			}
		})
		lead := s.whole()
		ask := func() geo.Timestamp {
			_, at := lead.Rest()
			return at
		}
		wait := func(d time.Duration, each func()) {
			for end := s.clock.Mono() + d; s.clock.Mono() < end; s.step() {
				each()
			}
		}
		s.until("rest", func() bool { return ask() != 0 && lead.Rests() })
		at, before := ask(), closed
		wait(10*time.Second, func() { ask() })
		require.LessOrEqual(t, closed-before, 1)
		require.True(t, lead.Rests())

		var c ranges.Close
		looked := false
		lead.Submit(&c, func(err error) {
			require.NoError(t, err)
			looked = true
		})
		s.until("a look", func() bool { return looked })
		require.Greater(t, c.T, at)
		require.WithinDuration(t, s.clock.Now(), c.T.Time(), time.Second)
		s.until("the same time at rest", func() bool { return ask() == c.T })

		before = closed
		wait(30*time.Second, func() { ask() })
		require.Positive(t, closed-before, "a bus that carries nothing is noticed")
		require.LessOrEqual(t, closed-before, 2)

		before = closed
		wait(4*time.Second, func() {})
		require.False(t, lead.Rests(), "nobody asks")
		require.Greater(t, closed-before, 3)

		s.until("rest", func() bool { return ask() != 0 && lead.Rests() })
		wrote, underWay := false, false
		lead.Submit(&increment{}, func(err error) { wrote = err == nil })
		s.until("a write", func() bool {
			underWay = underWay || !wrote && ask() == 0
			return wrote
		})
		require.True(t, underWay, "no answer for rest while a write is on its way")
		require.Zero(t, ask(), "nor once it is there, before the next closed record")
		before = closed
		wait(900*time.Millisecond, func() { ask() })
		require.Greater(t, closed-before, 2)
	})
}
