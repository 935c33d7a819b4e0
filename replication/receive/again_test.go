package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// stoppedAt plays some seconds of writes with a stream that an earlier version stopped for its third record, and returns
// the receiver that came then.
func (w *world) stoppedAt(bad geo.Stream, hash func(record []byte) geo.Hash, took time.Duration) *Receiver {
	for w.heads[bad].Seq < 5 {
		w.write()
	}
	w.cursors[bad] = geo.Head{Seq: 2, Hash: change.HashOf(w.outbox[bad][2])}
	w.applied[bad] = []geo.Seq{1, 2}
	w.stops = map[geo.Stream]change.Stop{bad: {Reason: change.StopVersion, Here: w.cursors[bad], There: geo.Head{Seq: 3, Hash: hash(w.outbox[bad][3])}}}
	r := w.receiver()
	w.runFor(r, took, func() {})
	return r
}

// A stream that an earlier version stopped for its next record goes on by itself with the first receiver that knows it: all
// that waited is applied, once (R11).
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11StreamGoesOnAfterTheUpgrade(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, seed)
		bad := testStream(testRange, 2)
		r := w.stoppedAt(bad, change.HashOf, 20*time.Second)
		require.Empty(t, w.stops)
		require.Equal(t, w.heads[bad], w.cursors[bad])
		w.drain([]*Receiver{r})
		w.requireOnce()
	}
}

// It stays stopped for a record that is another one by now, and where the source stopped it for a reason that this version
// did not know; and where this version does not know the record either, which is asked for once (R11).
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11UnknownRecordKeepsItsStop(t *testing.T) {
	for name, hash := range map[string]func([]byte) geo.Hash{
		"another": func(b []byte) geo.Hash { return change.HashOf(b) + 1 }, "reason": func([]byte) geo.Hash { return 0 },
		"unknown": func(b []byte) geo.Hash { return change.HashOf(later(b)) },
	} {
		w := newWorld(t, 1)
		bad := testStream(testRange, 2)
		w.stoppedAt(bad, hash, 10*againLeast)
		require.Zero(t, w.resumed, name)
		require.Equal(t, change.StopVersion, w.stops[bad].Reason, name)
		require.EqualValues(t, 2, w.cursors[bad].Seq, name)
		switch name {
		case "reason":
			require.Zero(t, w.pulls[bad])
		case "unknown":
			require.Equal(t, 1, w.pulls[bad])
		default:
			require.LessOrEqual(t, w.pulls[bad], 11)
		}
	}
}

// While the node that evaluates is of the earlier version, the stream is stopped again, and let go on less and less often
// (R11).
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11TriesLessOften(t *testing.T) {
	w := newWorld(t, 1)
	bad := testStream(testRange, 2)
	old := true
	w.outcome = func(rec *Record) Outcome {
		if old && rec.Record.Stream() == bad && rec.Record.Seq == 3 {
			return UnknownVersion
		}
		return 0
	}
	r := w.stoppedAt(bad, change.HashOf, 32*againLeast)
	require.Equal(t, change.StopVersion, w.stops[bad].Reason)
	require.InDelta(t, 5, w.resumed, 1, "after 0, 1, 3, 7, 15 and 31 minutes")
	old = false
	w.runFor(r, againMost, func() {})
	require.Empty(t, w.stops)
	w.drain([]*Receiver{r})
	w.requireOnce()
}
