package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// A stream of an account that has no secondary here any more has records that are gone at the source. The
// receiver was behind in it and asked for them; once the range here reports the stream as ended, it
// asks no more (R7, R10).
//
// Capability: Two locations: Changes of a redundancy.
func TestR10EndedStreamIsNotPulled(t *testing.T) {
	w := newWorld(t, 1)
	w.writeTo(testRange, 30)
	ended := testStream(testRange, 1)
	r := w.receiver()
	w.run(r, 5*time.Second)
	w.outbox[ended] = nil
	w.heads[ended] = geo.Head{Seq: w.cursors[ended].Seq + 5, Hash: 5}
	w.closedH[ended] = w.heads[ended].Seq
	r.ranges[testRange].mirror.reload()
	w.run(r, 5*time.Second)
	before := w.pulls[ended]
	require.Positive(t, before)

	w.ended = map[geo.Account]geo.Epoch{ended.Account: {Number: ended.Epoch.Number + 1, Location: ended.Epoch.Location}}
	delete(w.cursors, ended)
	delete(w.closedH, ended)
	w.run(r, 5*time.Second)
	before = w.pulls[ended]
	w.run(r, 30*time.Second)
	require.Equal(t, before, w.pulls[ended])
}

// R22: a location that has become the primary of an account has no cursors of the former epoch. The former primary, which does
// not know yet, answers a full set that they are lost. That is no loss: it is not confirmed, nothing is stopped at
// either end, and no alarm is raised. The same answer for an account that is still received is confirmed, and stops.
func TestR22CursorsOfALeftEpochAreNotLost(t *testing.T) {
	for _, left := range []bool{true, false} {
		w := newWorld(t, 1)
		w.calm, w.stops = true, map[geo.Stream]change.Stop{}
		st := testStream(testRange, 1)
		if left {
			w.ended = map[geo.Account]geo.Epoch{st.Account: {Number: st.Epoch.Number + 1, Location: "south"}}
		}
		asked, confirmed := 0, false
		w.compare = func(cursors map[geo.Stream]Cursor, full bool) []Mismatch {
			c := cursors[st]
			confirmed = confirmed || c.Below == 7
			if !full && c == (Cursor{}) {
				return nil
			}
			asked++
			return []Mismatch{{Stream: st, Reason: change.StopLost, There: geo.Head{Seq: 7}, Stopped: c.Below == 7}}
		}
		r := w.receiver()
		w.run(r, time.Minute)
		r.ranges[testRange].acks.renew(w.clk.Mono())
		w.run(r, time.Minute)
		require.Positive(t, asked)
		require.Equal(t, !left, confirmed)
		if left {
			require.Empty(t, w.stops)
			require.Empty(t, w.alarms)
			require.Equal(t, 2, asked, "once for each full set")
		} else {
			require.Equal(t, change.StopLost, w.stops[st].Reason)
			require.Equal(t, map[string]int{AlarmLost: 1}, w.alarms)
		}
	}
}

// R22: the records of a former primary that does not know yet are refused without an alarm; those of an account that is
// received here in a higher epoch raise one for each stream.
func TestR22RefusedOfALeftEpochIsNoAlarm(t *testing.T) {
	for _, left := range []bool{true, false} {
		w := newWorld(t, 1)
		w.calm, w.refuse = true, map[geo.Stream]bool{}
		for lane := range geo.Lane(4) {
			w.refuse[testStream(testRange, lane)] = true
		}
		if left {
			w.ended = map[geo.Account]geo.Epoch{"acct": {Number: 2, Location: "south"}}
		}
		r := w.receiver()
		w.writeTo(testRange, 40)
		w.run(r, 10*time.Second)
		w.writeTo(testRange, 40)
		w.run(r, 10*time.Second)
		require.Len(t, r.ranges[testRange].refused, 4)
		require.Empty(t, w.applied)
		if left {
			require.Empty(t, w.alarms)
		} else {
			require.Equal(t, map[string]int{AlarmEpoch: 4}, w.alarms)
		}
	}
}
