package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// run lets a receiver work for some time, everybody answering.
func (w *world) run(r *Receiver, d time.Duration) {
	for end := w.clk.Mono() + d; w.clk.Mono() < end; w.clk.Advance(10 * time.Millisecond) {
		r.Step(w.clk.Mono())
		w.deliverAll()
	}
}

// fill gives the receiving range cursors of many streams, as if they had been applied for long.
func (w *world) fill(accounts int) {
	for a := range accounts {
		for lane := range geo.Lane(geo.LaneCount) {
			st := testStream(testRange, lane)
			st.Account = geo.Account(rune('a'+a%26)) + geo.Account(time.Duration(a).String())
			w.cursors[st] = geo.Head{Seq: 1, Hash: 1}
		}
	}
}

// R16: the source answers that a stream is deleted above the cursor that it got. That is a loss only if the
// range here, read after the answer, is below it as well: a loss goes back with the number, and
// what the source has stopped is stopped here, with its reason, whatever answers get lost. A cursor that
// was read too early, and is no longer below, is sent again and stops nothing.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
func TestR16LossIsConfirmed(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		w.stops = map[geo.Stream]change.Stop{}
		w.writeTo(testRange, 40)
		lost, early := testStream(testRange, 0), testStream(testRange, 1)
		below, again := false, 0
		w.compare = func(cursors map[geo.Stream]Cursor, _ bool) (out []Mismatch) {
			if c, ok := cursors[lost]; ok {
				if below = below || c.Below == 1000; c.Below > 0 {
					require.EqualValues(t, 1000, c.Below)
				}
				out = append(out, Mismatch{Stream: lost, Reason: change.StopLost, There: geo.Head{Seq: 1000}, Stopped: below})
			}
			if c, ok := cursors[early]; ok && c.Seq > 0 {
				require.Zero(t, c.Below)
				if again++; again == 1 {
					out = append(out, Mismatch{Stream: early, Reason: change.StopLost, There: geo.Head{Seq: 1}})
				}
			}
			return out
		}
		r := w.receiver()
		w.run(r, 20*time.Second)
		require.True(t, below)
		require.Equal(t, map[geo.Stream]change.Stop{lost: {Reason: change.StopLost, There: geo.Head{Seq: 1000}}}, w.stops)
		require.GreaterOrEqual(t, again, 2)
		require.Equal(t, 1, w.alarms[AlarmLost])
		require.Zero(t, w.alarms[AlarmFork])
	}
}

// R16: what the range here lost when it was recovered shows without a new record of the stream: it voids
// the closed times, so that a full closed record is pulled, and the cursors are read and sent.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestR16LossHereShowsAtRest(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	w.writeTo(testRange, 40)
	r := w.receiver()
	w.run(r, 10*time.Second)
	lost := testStream(testRange, 0)
	at := w.cursors[lost]
	w.cursors[lost] = geo.Head{Seq: at.Seq - 1}
	w.taken[testRange], w.keep = 0, true
	shown := false
	w.compare = func(cursors map[geo.Stream]Cursor, _ bool) []Mismatch {
		c, ok := cursors[lost]
		shown = shown || ok && c.Seq == at.Seq-1
		return nil
	}
	delete(w.outbox, lost)
	w.writeTo(testRange, 0)
	w.run(r, 3*time.Second)
	require.True(t, shown)
}

// R16: the source is sent that a stream is stopped here for a fork, with its cursor, until it has answered;
// also by a receiver that has started since, and of a stream without a cursor.
func TestR16StopIsSent(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.writeTo(testRange, 40)
		w.run(w.receiver(), 10*time.Second)
		stopped, empty := testStream(testRange, 0), testStream(testRange, geo.LaneCount-1)
		delete(w.cursors, empty)
		delete(w.heads, empty)
		w.stops = map[geo.Stream]change.Stop{stopped: {Reason: change.StopForked}, empty: {Reason: change.StopForked}}
		sent := map[geo.Stream]change.StopReason{}
		w.compare = func(cursors map[geo.Stream]Cursor, _ bool) []Mismatch {
			for st, c := range cursors {
				require.True(t, c.Stop == change.NotStopped || c.Stop == w.stops[st].Reason)
				sent[st] = max(c.Stop, sent[st])
			}
			return nil
		}
		w.run(w.receiver(), 10*time.Second)
		require.Equal(t, change.StopForked, sent[stopped])
		require.Equal(t, change.StopForked, sent[empty])
	}
}

// R12: what goes over the link follows what moved, never the number of streams. Of 1,000 accounts
// with 32 lanes the cursors are read and sent once at the start. At rest nothing is read and nothing
// is sent until the reconciliation; of four streams that move four are named.
//
// Capability: Two locations: What crosses at rest follows what moved (R12).
func TestR12AcknowledgementsNameWhatMoved(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	const streams = 1000 * geo.LaneCount
	w.fill(1000)
	r := w.receiver()
	w.run(r, 2*time.Second)
	require.Equal(t, []int{streams, 1, streams}, []int{w.acked, w.fulls, w.loaded})

	w.run(r, 10*time.Second)
	require.Equal(t, []int{streams, 1, streams}, []int{w.acked, w.fulls, w.loaded}, "at rest")

	for range 100 {
		w.writeTo(testRange, 3)
		w.run(r, 100*time.Millisecond)
	}
	require.LessOrEqual(t, w.acked-streams, 300)
	require.Equal(t, []int{1, streams}, []int{w.fulls, w.loaded})
	require.Empty(t, w.whole())

	w.run(r, 5*time.Minute)
	require.Equal(t, 2, w.fulls, "the reconciliation")
	require.Equal(t, 2*streams+4, w.loaded)
}

// After calls that failed, the source may have another leader, which knows of no cursor: once it
// answers it gets all of them.
func TestR16FullSetAfterErrors(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	r := w.receiver()
	w.write()
	w.run(r, time.Second)
	require.Equal(t, 1, w.fulls)
	w.ackErr = errLost
	w.write()
	w.run(r, 10*time.Second)
	require.Equal(t, 1, w.fulls, "none while it does not answer")
	w.ackErr = nil
	w.run(r, 2*time.Second)
	require.Equal(t, 2, w.fulls)
	require.Empty(t, w.whole())
}

// The mirror is loaded again where it proves wrong: behind what another receiver committed, and
// ahead of a range that lost what it had committed. Either way the streams go on.
func TestMirrorIsCorrected(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	r := w.receiver()
	w.writeTo(testRange, 20)
	w.run(r, time.Second)
	require.Empty(t, w.whole())

	other := w.receiver()
	w.writeTo(testRange, 20)
	w.run(other, time.Second)
	w.writeTo(testRange, 20)
	w.run(r, 5*time.Second)
	require.Empty(t, w.whole())

	st := testStream(testRange, 0)
	w.keep = true // The source still has what the range loses.
	w.writeTo(testRange, 40)
	w.run(r, time.Second)
	lost := w.heads[st].Seq - 2
	for n := range w.outbox[st] {
		if n == lost {
			w.cursors[st] = geo.Head{Seq: n, Hash: change.HashOf(w.outbox[st][n])}
		}
	}
	w.applied[st] = w.applied[st][:lost]
	require.Equal(t, lost, w.cursors[st].Seq)
	w.keep = false
	w.writeTo(testRange, 40)
	w.run(r, 10*time.Second)
	require.Empty(t, w.whole())
	w.requireOnce()
}
