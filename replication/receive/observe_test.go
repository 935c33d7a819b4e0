package receive

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
)

// viewed runs a calm receiver for a while and returns what it shows of an account.
func (w *world) viewed(r *Receiver, took time.Duration) RangeView {
	w.runFor(r, took, func() {})
	return r.View(testRange, testStream(testRange, 0).Account)
}

// A stream shows the record that waits, what for and for how long; it is kept here, and not pulled meanwhile. Once it
// is applied the stream shows no more.
func TestViewOfWaitingStream(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	var st geo.Stream
	w.outcome = func(rec *Record) Outcome {
		st, rec.For = rec.Record.Stream(), WaitsForPayload
		return Wait
	}
	r := w.receiver()
	require.False(t, r.View(testRange, "nobody").Known)
	w.writeTo(testRange, 1)
	v := w.viewed(r, 3*time.Second)
	require.True(t, v.Known)
	require.Less(t, v.Contact, 4*time.Second)
	require.Len(t, v.Streams, 1)
	s := v.Streams[st]
	require.Equal(t, StreamView{Seq: 1, For: WaitsForPayload, Since: s.Since}, s)
	require.Greater(t, s.Since, 2*time.Second)
	require.Empty(t, r.View(testRange, "nobody").Streams)
	require.Zero(t, v.Failing)
	w.outcome = nil
	require.Empty(t, w.viewed(r, 3*time.Second).Streams)
	require.Empty(t, r.seen.ranges[testRange].streams)
}

// Records of later batches behind a record that waits do not hide what it waits for, nor how long it has waited.
func TestViewOfRecordsBehindOneThatWaits(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	st := testStream(testRange, 0)
	w.outcome = func(rec *Record) Outcome {
		rec.For = WaitsForPayload
		return Wait
	}
	r := w.receiver()
	for w.heads[st].Seq == 0 {
		w.writeTo(testRange, 1)
	}
	since := w.viewed(r, time.Second).Streams[st].Since
	for w.heads[st].Seq < 3 {
		w.writeTo(testRange, 1)
	}
	for range 40 {
		s := w.viewed(r, 50*time.Millisecond).Streams[st]
		require.Equal(t, StreamView{Seq: 1, For: WaitsForPayload, Since: s.Since}, s)
		require.Greater(t, s.Since, since)
		since = s.Since
	}
}

// A commit that is under way, and commits that fail, show with their times; other ranges show nothing.
func TestViewOfFailingCommits(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	r := New(w.options(testRange, otherRange))
	w.mute[testRange] = true
	w.write()
	require.Greater(t, w.viewed(r, 3*time.Second).Committing, 2*time.Second)
	require.Zero(t, r.View(otherRange, "").Committing)
	w.unmute(testRange)
	require.Zero(t, w.viewed(r, time.Second).Committing)

	broken := errors.New("no leader")
	of := r.seen.ranges[testRange]
	begun := w.clk.Mono()
	of.applied(&Batch{}, broken, begun)
	w.clk.Advance(time.Second)
	of.applied(&Batch{}, broken, w.clk.Mono())
	require.Equal(t, Trouble{broken, time.Second}, r.View(testRange, "").Failing)
	of.applied(&Batch{}, nil, w.clk.Mono())
	require.Zero(t, r.View(testRange, "").Failing)
}

// silentBus never answers.
type silentBus struct{ bus.Consumer }

func (silentBus) Poll(int) ([]bus.Message, error) { return nil, bus.ErrUnavailable }

// A bus that does not answer, and calls that fail, show for how long they have.
func TestViewOfUnreachable(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	o := w.options(testRange)
	o.Consumer = silentBus{o.Consumer}
	r := New(o)
	v := w.viewed(r, 3*time.Second)
	require.ErrorIs(t, v.Bus.Err, bus.ErrUnavailable)
	require.Greater(t, v.Bus.Since, 2*time.Second)
	require.Zero(t, v.Calls)

	w.ackErr = errors.New("cut")
	r = w.receiver()
	w.write()
	v = w.viewed(r, 3*time.Second)
	require.Zero(t, v.Bus)
	require.ErrorIs(t, v.Calls.Err, w.ackErr)
	w.ackErr = nil
	require.Zero(t, w.viewed(r, 3*time.Second).Calls)
}
