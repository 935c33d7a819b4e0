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
