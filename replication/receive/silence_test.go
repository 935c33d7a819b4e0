package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// R15: a range that is silent from the start of the receiver raises the alarm as one does that fell silent,
// while an account is received from it; without one its silence is as it should be. What was silent before
// the first account does not count.
func TestR15SilenceFromTheStart(t *testing.T) {
	w := newWorld(t, 1)
	w.idle = true
	r := w.receiver()
	r.o.SilenceAfter = 5 * time.Second
	runFor := func(d time.Duration) {
		for end := w.clk.Mono() + d; w.clk.Mono() < end; w.clk.Advance(50 * time.Millisecond) {
			r.Step(w.clk.Mono())
			w.deliverSome()
		}
	}
	runFor(20 * time.Second)
	require.Empty(t, w.alarms)
	w.idle = false
	runFor(4 * time.Second)
	require.Empty(t, w.alarms)
	runFor(10 * time.Second)
	require.Equal(t, map[string]int{AlarmSilence: 1}, w.alarms)
	w.idle = true
	runFor(10 * time.Second)
	w.idle = false
	runFor(6 * time.Second)
	require.Equal(t, map[string]int{AlarmSilence: 2}, w.alarms, "another episode")
}

// R16: while nothing comes off the bus of a range, its source gets all cursors within two seconds and again each
// second or so, and finds what it lost; while messages of the range come it gets them at the start alone.
func TestR16SilentRangeIsCompared(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	r := w.receiver()
	r.o.SilenceAfter = 5 * time.Second
	runFor := func(d time.Duration, each func()) {
		for end := w.clk.Mono() + d; w.clk.Mono() < end; w.clk.Advance(50 * time.Millisecond) {
			each()
			r.Step(w.clk.Mono())
			w.deliverAll()
		}
	}
	runFor(30*time.Second, w.write)
	require.Equal(t, 1, w.fulls)
	runFor(2*time.Second, func() {})
	require.Equal(t, 2, w.fulls)
	runFor(10*time.Second, func() {})
	require.InDelta(t, 12, w.fulls, 2)
	before := w.fulls
	runFor(30*time.Second, w.write)
	require.LessOrEqual(t, w.fulls, before+1)
}
