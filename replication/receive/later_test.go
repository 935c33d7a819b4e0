package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Closed records of a later version, over the bus and pulled, promise nothing and hide nothing: every record
// of their frames is applied, no stream stops, another range goes on, and the range is in trouble that names
// the cause, with one alarm. The full closed record is not pulled again and again. Once the version is known
// everything is whole (R11).
func TestR11LaterClosedRecord(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		r := New(w.options(testRange, otherRange))
		w.runFor(r, time.Second, func() {
			if w.rng.IntN(10) == 0 {
				w.write()
				w.writeTo(otherRange, 1)
			}
		})
		w.laterClosed = map[geo.RangeID]bool{testRange: true}
		stood, pulled := w.taken[testRange], w.wholes[testRange]
		w.runFor(r, 20*time.Second, func() {
			if w.now < 300 && w.rng.IntN(10) == 0 {
				w.write()
				w.writeTo(otherRange, 1)
			}
		})
		require.GreaterOrEqual(t, w.now, geo.Timestamp(300))
		for st, head := range w.heads {
			require.Equal(t, head, w.cursors[st], "%s", st)
		}
		require.Equal(t, w.closedT[otherRange], w.taken[otherRange])
		require.Less(t, w.taken[testRange], w.closedT[testRange])
		require.GreaterOrEqual(t, w.taken[testRange], stood)
		require.LessOrEqual(t, w.wholes[testRange]-pulled, 3)
		require.Equal(t, 1, w.alarms[AlarmVersion])
		require.Zero(t, w.alarms[AlarmChecksum])
		require.ErrorIs(t, r.View(testRange, "acct").Failing.Err, errLaterClosed)
		require.NoError(t, r.View(otherRange, "acct").Failing.Err)

		w.laterClosed = nil // The source was set back; or the receiver is upgraded.
		if seed%2 == 0 {
			r = New(w.options(testRange, otherRange))
		}
		w.drain([]*Receiver{r})
		w.calm = true
		w.runFor(r, 2*laterAgain, func() { w.writeTo(testRange, 0) })
		require.NoError(t, r.View(testRange, "acct").Failing.Err)
	}
}

// The node that evaluates may be the older one: then the closed record is not taken there, the records of its batch
// are, and the full one is not pulled again at once (R11).
func TestR11LaterClosedRecordWhereItIsEvaluated(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	r := w.receiver()
	w.older = true
	for range 20 {
		w.write()
		w.runFor(r, 100*time.Millisecond, func() {})
	}
	for st, head := range w.heads {
		require.Equal(t, head, w.cursors[st], "%s", st)
	}
	require.Zero(t, w.taken[testRange])
	require.Equal(t, 1, w.alarms[AlarmVersion])
	require.LessOrEqual(t, w.wholes[testRange], 2)
	w.older = false
	w.drain([]*Receiver{r})
	w.runFor(r, 2*laterAgain, func() { w.writeTo(testRange, 0) })
	require.NoError(t, r.View(testRange, "acct").Failing.Err)
}
