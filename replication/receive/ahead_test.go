package receive

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// R6, while the source's clock is a little more than geo.ClockOffMax ahead of the one here, for good:
// each record and closed record waits, and is taken as soon as the clock here has reached it. The
// closed time here goes on all the while and is never ahead by more. It is one episode, one alarm.
//
// Capability: Two locations: A wrong clock (R6).
func TestR6TimesAheadAreTakenLate(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			const by = geo.ClockOffMax + 300*time.Millisecond
			limit := func() time.Time { return w.clk.Now().Add(geo.ClockOffMax) }
			w.ahead = func(ts geo.Timestamp) time.Duration { return max(0, ts.Time().Sub(limit())) }
			r := w.receiver()
			last, stood := geo.Timestamp(0), time.Duration(0)
			for range 3000 {
				const step = 10 * time.Millisecond
				w.clk.Advance(step)
				w.now = max(w.now, geo.TimestampOf(w.clk.Now().Add(by)))
				if w.rng.IntN(10) == 0 {
					w.write()
				}
				r.Step(w.clk.Mono())
				w.deliverSome()
				require.False(t, w.taken[testRange].Time().After(limit()))
				if stood += step; w.taken[testRange] != last {
					last, stood = w.taken[testRange], 0
				}
				require.Less(t, stood, 5*time.Second, "the closed time stands still")
			}
			require.Equal(t, 1, w.alarms[AlarmClock])
			require.True(t, r.Ahead(testRange))
			w.drain([]*Receiver{r})
			w.requireOnce()
			w.runFor(r, aheadAgain+time.Second, func() {}) // What the receiver has not handled yet included.
			require.False(t, r.Ahead(testRange))
		})
	}
}

// R6: a closed record and a record of the year 2100 are tried again twice a second. So they are
// taken soon after the clock here, which may be the wrong one, was corrected. No answer is pulled
// in a tight loop meanwhile.
//
// Capability: Two locations: A wrong clock (R6).
func TestR6FarAheadIsTriedAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.now = geo.TimestampOf(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	asked, right := 0, false
	w.ahead = func(ts geo.Timestamp) time.Duration {
		asked++
		if right {
			return 0
		}
		return max(0, ts.Time().Sub(w.clk.Now().Add(geo.ClockOffMax)))
	}
	w.write()
	r := w.receiver()
	run := func(seconds int) {
		for range seconds * 100 {
			w.clk.Advance(10 * time.Millisecond)
			r.Step(w.clk.Mono())
			w.deliverSome()
		}
	}
	run(60)
	require.Zero(t, w.taken[testRange])
	require.True(t, r.Ahead(testRange))
	require.Less(t, asked, 60*10)
	right = true
	run(20) // Answers get lost on the way.
	require.Empty(t, w.whole())
	w.clk.Advance(aheadAgain)
	r.Step(w.clk.Mono())
	require.False(t, r.Ahead(testRange))
}
