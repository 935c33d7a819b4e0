package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
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

// R11: a source of a later version may stop a stream for a reason that this version has no name for. The receiver
// stops it for its version, as it does for a record that it does not know: the reason itself is not kept, since
// no replica here could apply the entry that has it. Of a stream that the source has not stopped it waits.
func TestR11StopOfALaterVersion(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, seed)
		w.writeTo(testRange, 40)
		r := w.receiver()
		w.run(r, 10*time.Second)
		bad, later := testStream(testRange, 1), change.StopReason(200)
		at, stopped := w.cursors[bad], false
		w.stops = map[geo.Stream]change.Stop{}
		w.compare = func(cursors map[geo.Stream]Cursor, _ bool) []Mismatch {
			if _, asked := cursors[bad]; asked {
				return []Mismatch{{Stream: bad, Reason: later, There: w.heads[bad], Stopped: stopped}}
			}
			return nil
		}
		r.ranges[testRange].acks.renew(0)
		w.run(r, 40*time.Second)
		require.Empty(t, w.stops)
		stopped = true
		w.run(r, 40*time.Second)
		require.Equal(t, change.StopVersion, w.stops[bad].Reason)
		require.Equal(t, at.Seq+1, w.stops[bad].There.Seq, "the next record")
		require.Len(t, w.stops, 1)
	}
}
