package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

func newRig(t *testing.T, partitions ...string) *rig {
	r := &rig{t: t, stamp: stamptest.New(t, "north", geo.Table)}
	r.start()
	g := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: g})
	for _, p := range partitions {
		rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
		stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: partition(p), Record: rec})
	}
	return r
}

// steps steps the shipper for seconds, in which it trims.
func (r *rig) steps() {
	for now := range 5 {
		r.ship.Step(time.Duration(now) * time.Second)
	}
}

// committing reports whether the shipper decides on stops.
func (r *rig) committing() bool {
	r.ship.mu.Lock()
	defer r.ship.mu.Unlock()
	return r.ship.stops.committing
}

// record is a record in the outbox.
func (r *rig) record(st geo.Stream, n geo.Seq) geo.Head {
	at, ok, err := r.leader().Machine.OutboxAt(st, n)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	return at.Head
}

// requireStopped acknowledges until the answer is one stopped stream.
func (r *rig) requireStopped(c StreamCursor, reason change.StopReason) {
	require.Eventually(r.t, func() bool {
		got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{c}})
		require.NoError(r.t, err)
		require.Len(r.t, got, 1)
		require.Equal(r.t, reason, got[0].Reason)
		return got[0].Stopped
	}, time.Minute, time.Millisecond)
}

// A stop belongs to the range, not to a process (R16). Every node is restarted, so another replica
// leads with another shipper. The stream is still stopped with both heads, nothing of it is trimmed,
// and no second alarm is raised.
func TestR16StopSurvivesRestartAndLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	st := testStream("p")
	ahead := StreamCursor{Stream: st, Head: geo.Head{Seq: 5, Hash: 55}}
	r.requireStopped(ahead, change.StopForked)
	require.Eventually(t, func() bool { return len(r.alarms()) == 1 }, time.Minute, time.Millisecond)
	head := r.leader().Machine.Head(st)
	for _, n := range r.stamp.Nodes() {
		require.NoError(t, r.stamp.Stop(n, true))
		require.NoError(t, r.stamp.Start(n))
	}
	r.start()
	got, err := r.ship.Acknowledge(Acknowledgement{Full: true, Cursors: []StreamCursor{{Stream: st, Head: head}}})
	require.NoError(t, err)
	require.Equal(t, []Mismatch{{st, change.StopForked, head, true}}, got)
	r.steps()
	require.Equal(t, "3 records", r.outbox())
	require.Equal(t, []string{AlarmFork}, r.alarms())
	why, ok := r.leader().Machine.Stopped(st)
	require.True(t, ok)
	require.Equal(t, ahead.Head, why.There)
}

// R16: the base of a settlement is offered to the cursor that it is for, and to no other. A cursor at the base goes
// on, and is answered with the end once the settlement has ended here, not before. Another fork stops the stream again.
func TestR16SettlingIsOffered(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	st := testStream("p")
	ahead := StreamCursor{Stream: st, Head: geo.Head{Seq: 5, Hash: 55}}
	answer := func(c StreamCursor) []Mismatch {
		t.Helper()
		out, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{c}})
		require.NoError(t, err)
		return out
	}
	r.requireStopped(ahead, change.StopForked)
	settle := &ranges.Settle{Stream: st, From: ahead.Head}
	stamptest.Submit(t, r.stamp, st.Range, settle)
	require.Equal(t, ranges.SettleBegun, settle.Outcome)
	base := r.leader().Machine.Head(st)
	require.Equal(t, geo.Seq(6), base.Seq)
	require.Equal(t, []Mismatch{{st, change.StopSettling, base, true}}, answer(ahead))
	there := StreamCursor{Stream: st, Head: base, Stop: change.StopSettling}
	require.Empty(t, answer(there))
	r.steps()
	require.Equal(t, "0 records", r.outbox(), "it is trimmed")
	got := answer(StreamCursor{Stream: st, Head: geo.Head{Seq: 4, Hash: 44}})
	require.Equal(t, change.StopLost, got[0].Reason, "a receiver that was recovered with loss is offered nothing")
	require.Equal(t, change.StopLost, answer(ahead)[0].Reason, "nor if it is where it was: the base is gone")

	stamptest.Submit(t, r.stamp, st.Range, &ranges.EndSettle{Stream: st, Base: base})
	require.Equal(t, []Mismatch{{st, change.StopSettling, base, false}}, answer(there), "up to the head")
	require.Empty(t, answer(StreamCursor{Stream: st, Head: base}))
	r.requireStopped(StreamCursor{Stream: st, Head: geo.Head{Seq: 9, Hash: 99}}, change.StopForked)
	require.Equal(t, change.StopForked, answer(there)[0].Reason)

	stamptest.Submit(t, r.stamp, st.Range, &ranges.Settle{Stream: st, From: geo.Head{Seq: 9, Hash: 99}})
	why, _ := r.leader().Machine.Stopped(st)
	require.Equal(t, change.StopSettling, why.Reason)
	r.requireStopped(StreamCursor{Stream: st, Head: geo.Head{Seq: 20, Hash: 99}}, change.StopForked)

	ahead.Head.Seq = 20
	stamptest.Submit(t, r.stamp, st.Range, &ranges.Settle{Stream: st, From: ahead.Head, Take: true})
	why, _ = r.leader().Machine.Stopped(st)
	require.Equal(t, change.StopTaking, why.Reason)
	require.Equal(t, []Mismatch{{st, change.StopSettling, why.Here, true}}, answer(ahead), "which side is kept is not the receiver's")
}

// R16: a cursor below what was deleted proves no loss by itself, nor by the stop that its sender keeps while records are left
// here; one that confirms the loss does.
func TestR16LossIsProven(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	st := testStream("p")
	second := r.record(st, 2)
	got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{{Stream: st, Head: second}}})
	require.NoError(t, err)
	require.Empty(t, got)
	r.steps()
	require.Equal(t, "1 records", r.outbox())
	for _, c := range []StreamCursor{{Stream: st}, {Stream: st, Stop: change.StopLost}, {Stream: st, Below: 1}} {
		got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{c}})
		require.NoError(t, err)
		require.Equal(t, []Mismatch{{st, change.StopLost, second, false}}, got, "%+v", c)
		require.False(t, r.committing(), "%+v", c)
	}
	r.requireStopped(StreamCursor{Stream: st, Below: 2}, change.StopLost)
}

// R14: cursors come in any order. An older one takes back nothing of what may go.
func TestR14OlderCursorTakesNothingBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	st := testStream("p")
	for _, n := range []geo.Seq{3, 2} {
		got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{{Stream: st, Head: r.record(st, n)}}})
		require.NoError(t, err)
		require.Empty(t, got)
	}
	r.steps()
	require.Equal(t, "0 records", r.outbox())
}

// A receiver that cannot decode a record stops its stream, and says so with its cursor: the stream is
// stopped here too, with that reason, and nothing of it is trimmed (R11). So it is for a record of a time
// up to which the receiver was promised all (R16). A cursor that does not fit is compared first, and other
// reasons are not for the receiver to find.
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11StopOfTheReceiver(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "q", "t", "u", "w")
	first := r.leader().Machine.Head(testStream("t"))
	for i, c := range []struct {
		at   StreamCursor
		want change.StopReason
	}{
		{StreamCursor{Stream: testStream("p"), Stop: change.StopVersion}, change.StopVersion},
		{StreamCursor{Stream: testStream("t"), Head: first, Stop: change.StopPoison}, change.StopPoison},
		{StreamCursor{Stream: testStream("u"), Stop: change.StopForked}, change.StopForked},
		{StreamCursor{Stream: testStream("q"), Head: geo.Head{Seq: 5, Hash: 55}, Stop: change.StopPoison}, change.StopForked},
		{StreamCursor{Stream: testStream("w"), Stop: change.StopLost}, change.StopLost}, // Its settlement has ended here.
	} {
		r.requireStopped(c.at, c.want)
		require.Eventually(t, func() bool { return len(r.alarms()) == i+1 }, time.Minute, time.Millisecond)
	}
	require.Equal(t, []string{"version", "poison", AlarmFork, AlarmFork, AlarmLost}, r.alarms())
	r.steps()
	require.Equal(t, "6 records", r.outbox())

	r = newRig(t, "p")
	got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{{Stream: testStream("p"), Stop: 99}}})
	require.NoError(t, err)
	require.Empty(t, got)
}

// R11: a stop for a record that the receiver could not decode ends once its cursor is behind that record. A cursor that was
// sent before, one of a stream that is still stopped there, and one that does not fit end nothing.
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11StopEndsOnceItIsPassed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	st := testStream("p")
	head := r.leader().Machine.Head(st)
	first := r.record(st, 1)
	for _, why := range []change.StopReason{change.StopVersion, change.StopPoison} {
		at := StreamCursor{Stream: st, Head: first, Stop: why}
		r.requireStopped(at, why)
		require.Eventually(t, func() bool { return !r.committing() }, time.Minute, time.Millisecond)
		for _, c := range []StreamCursor{
			at, {Stream: st, Head: head, Stop: why}, {Stream: st, Head: first}, {Stream: st, Head: geo.Head{Seq: 2, Hash: 22}}, {Stream: st, Head: geo.Head{Seq: 9, Hash: 99}},
		} {
			got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{c}})
			require.NoError(t, err)
			require.True(t, got[0].Stopped, "%+v", c)
			if c.Stop == why {
				require.False(t, r.committing(), "nothing is to be decided")
			}
		}
		// A command that ended the stop would be before this one.
		stamptest.Submit(t, r.stamp, st.Range, stamptest.Gate{Account: "other"})
		have, _ := r.leader().Machine.Stopped(st)
		require.Equal(t, why, have.Reason)
		if why == change.StopVersion {
			stamptest.Submit(t, r.stamp, st.Range, &ranges.Resume{Stream: st})
		}
	}
	passed := Acknowledgement{Cursors: []StreamCursor{{Stream: st, Head: head}}}
	require.Eventually(t, func() bool {
		got, err := r.ship.Acknowledge(passed)
		require.NoError(t, err)
		return len(got) == 0
	}, time.Minute, time.Millisecond)
	require.Empty(t, r.leader().Machine.Stops())
	r.steps()
	require.Eventually(t, func() bool { return r.outbox() == "0 records" }, time.Minute, time.Millisecond, "it is trimmed")
	require.Equal(t, []string{"version", "poison"}, r.alarms())
}

// An alarm means a stop (R16): after an unknown outcome it waits until the very stop that was staged
// is in the state, and is then raised once. A deposed leader's stop, which never comes, raises none,
// nor does that of another leader, which raised its own.
func TestR16AlarmMeansStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "q")
	why := change.Stop{Reason: change.StopForked, There: geo.Head{Seq: 9}}
	r.ship.stops.unsure = []stopped{{testStream("p"), why}, {testStream("q"), why}}
	r.ship.Step(0)
	require.Empty(t, r.alarms())
	for _, p := range []string{"p", "q"} {
		stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stopNow{testStream(p), why})
	}
	r.ship.stops.unsure[0].why, _ = r.leader().Machine.Stopped(testStream("p")) // As if it had been staged here.
	for now := range 3 {
		r.ship.Step(time.Duration(now) * time.Second)
	}
	require.Equal(t, []string{AlarmFork}, r.alarms())
	require.Empty(t, r.ship.stops.unsure)
}

// stopNow is a command that stops a stream.
type stopNow struct {
	s   geo.Stream
	why change.Stop
}

func (c stopNow) Evaluate(tx *ranges.Tx) error {
	tx.Stop(c.s, c.why)
	return nil
}

// A cursor of a stream that this range does not number is refused: it must stop nothing that is
// received here.
func TestR16ForeignCursorIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p")
	st := testStream("p")
	for _, change := range []func(*geo.Stream){
		func(s *geo.Stream) { s.Epoch.Location = "south" },
		func(s *geo.Stream) { s.Range = 77 },
	} {
		foreign := st
		change(&foreign)
		_, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{{Stream: foreign, Head: geo.Head{Seq: 9, Hash: 9}}}})
		require.ErrorContains(t, err, "no stream of range 4 of north")
	}
	require.Empty(t, r.leader().Machine.Stops())
}

// Trims have a bound in rows for each group, and a round walks only the streams that moved: those
// that are done leave the shipper's memory (invariant 8).
func TestTrimWalksWhatMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "q")
	var cursors []StreamCursor
	for _, p := range []string{"p", "q"} {
		st := testStream(p)
		cursors = append(cursors, StreamCursor{Stream: st, Head: r.leader().Machine.Head(st)})
	}
	_, err := r.ship.Acknowledge(Acknowledgement{Cursors: cursors})
	require.NoError(t, err)
	require.Len(t, r.ship.acked, 2)
	r.ship.Step(0)
	r.ship.Step(time.Second)
	require.Equal(t, "0 records", r.outbox())
	r.ship.Step(2 * time.Second)
	require.Empty(t, r.ship.acked)
	_, err = r.ship.Acknowledge(Acknowledgement{Cursors: cursors})
	require.NoError(t, err)
	require.Empty(t, r.ship.acked, "a cursor that moved nothing is not remembered")

	r.ship.acked[testStream("p")] = geo.Head{Seq: outbox.TrimRowsMax + 10}
	r.ship.acked[testStream("q")] = geo.Head{Seq: 100}
	due, more := r.ship.due()
	require.True(t, more)
	require.Len(t, due, 1)

	many := make(trimCommand, 2*trimStreamsMax)
	for i := range many {
		many[i].Head.Seq = 8
	}
	due, more = many.group(func(geo.Stream) geo.Seq { return 7 })
	require.True(t, more, "a row of each is read")
	require.Len(t, due, trimStreamsMax)
}
