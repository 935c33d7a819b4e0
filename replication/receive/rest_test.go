package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// A source at rest that names the closed record which is here is no silent one. A source that names a later one,
// which the bus has lost, is silent, and so is a source of another incarnation. It holds R12.
//
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestRestIsNoSilence(t *testing.T) {
	for name, c := range map[string]struct {
		later  geo.Timestamp
		other  geo.Incarnation
		silent int
	}{"at rest": {}, "a later closed record": {later: 2, silent: 1}, "another incarnation": {other: 1, silent: 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			o := w.options(testRange)
			o.SilenceAfter = 3 * time.Second
			r := New(o)
			w.calm = true
			w.runFor(r, 200*time.Millisecond, func() {})
			w.write()
			w.drain([]*Receiver{r})
			require.Zero(t, w.alarms[AlarmSilence])
			asked := 0
			w.rest = func(_ geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error)) {
				asked++
				w.later(func() { done(c.other, w.taken[testRange]+c.later, nil) })
			}
			w.runFor(r, 10*time.Second, func() {})
			require.Equal(t, c.silent, w.alarms[AlarmSilence])
			require.InDelta(t, 20, asked, 2)
		})
	}
}
