package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R18: a copy fell out of the source's outbox while a stream was behind. Its pull, which finds nothing, has the cursor compared again,
// and so the receiver learns of it within seconds, of all streams with the next full set. They are stopped here
// with that reason, which is not sent back as found here; one alarm is raised; and nothing is pulled any more.
//
// Capability: Two locations: The outbox has a budget.
func TestR18FellOutIsLearned(t *testing.T) {
	w := newWorld(t, 1)
	w.stops = map[geo.Stream]change.Stop{}
	w.writeTo(testRange, 30)
	r := w.receiver()
	w.run(r, 5*time.Second)
	gone, whole := testStream(testRange, 1), testStream(testRange, 2)
	fell := map[geo.Stream]bool{gone: true, whole: true, testStream(testRange, 31): true}
	w.outbox[gone] = nil
	w.heads[gone] = geo.Head{Seq: w.cursors[gone].Seq + 5, Hash: 5}
	w.closedH[gone] = w.heads[gone].Seq
	answersSets := false // In the first part the source answers a cursor alone.
	w.compare = func(cursors map[geo.Stream]Cursor, full bool) (out []Mismatch) {
		for st := range fell {
			c, named := cursors[st]
			require.Equal(t, change.NotStopped, c.Stop)
			if named && !full || full && answersSets {
				out = append(out, Mismatch{Stream: st, Reason: change.StopBudget, There: w.heads[st], Stopped: true})
			}
		}
		return out
	}
	r.ranges[testRange].mirror.reload()
	w.run(r, 10*time.Second)
	require.Equal(t, change.StopBudget, w.stops[gone].Reason)
	require.Equal(t, w.heads[gone], w.stops[gone].There)
	require.Equal(t, 1, w.alarms[AlarmBudget])
	pulls := w.pulls[gone]
	w.run(r, 30*time.Second)
	require.Equal(t, pulls, w.pulls[gone])

	answersSets = true
	r.ranges[testRange].acks.renew(w.clk.Mono())
	w.run(r, 10*time.Second)
	require.Len(t, w.stops, len(fell))
	require.Equal(t, 1, w.alarms[AlarmBudget], "one for the copy")
}

// R18: so it is of a stream that fell out before its first record came, of which there is no cursor here: the one stop, and
// one that could not be committed.
//
// Capability: Two locations: The outbox has a budget.
func TestR18FellOutBeforeTheFirstRecord(t *testing.T) {
	w := newWorld(t, 1)
	w.stops = map[geo.Stream]change.Stop{}
	w.writeTo(testRange, 30)
	r := w.receiver()
	w.run(r, 5*time.Second)
	gone := testStream(testRange, 31)
	w.heads[gone] = geo.Head{Seq: 5, Hash: 5}
	w.closedH[gone] = w.heads[gone].Seq
	w.stopFails = 3
	w.compare = func(cursors map[geo.Stream]Cursor, full bool) (out []Mismatch) {
		if _, named := cursors[gone]; named && !full {
			out = append(out, Mismatch{Stream: gone, Reason: change.StopBudget, There: w.heads[gone], Stopped: true})
		}
		return out
	}
	r.ranges[testRange].mirror.reload()
	w.run(r, 30*time.Second)
	require.Zero(t, w.stopFails)
	require.Equal(t, change.StopBudget, w.stops[gone].Reason)
}
