package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// hold commits a record of a stream whose payload is on its way: a closed record names it, and it is not sent.
func (w *world) hold(st geo.Stream) {
	w.now++
	w.record(st, 0)
	w.held[st] = w.heads[st].Seq
	w.publish(w.frameOf(), map[geo.Stream]bool{st: true})
}

// release sends what was held back of a stream, unless the bus is to lose it.
func (w *world) release(st geo.Stream, lose bool) {
	f := w.frameOf()
	if !lose {
		f.Records = append(f.Records, w.outbox[st][w.held[st]])
	}
	delete(w.held, st)
	w.now++
	w.publish(f, nil)
}

func (w *world) frameOf() change.Frame {
	return change.Frame{Origin: testOrigin, Range: testRange, Closed: &change.Closed{Origin: testOrigin, Range: testRange, T0: w.closedT[testRange]}}
}

// A record that waits for its payload, for longer than a stream may be below a closed head, is no gap: the source
// answers that it has not sent it. Then it comes off the bus, up to 2 s later, and is not pulled. Meanwhile the source
// is asked ever less often. The same again for the next payload of the stream.
//
// Capability: Two locations: A record that waits for its payload is no gap.
func TestR14HeldPayloadIsNoGap(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond, 1500 * time.Millisecond} {
		w := newWorld(t, 1)
		w.calm, w.held = true, map[geo.Stream]geo.Seq{}
		r := w.receiver()
		st := testStream(testRange, 1)
		w.run(r, time.Second)
		for range 3 {
			w.hold(st)
			before := w.pulls[st]
			w.run(r, 20*time.Second)
			asked := w.pulls[st] - before
			require.Greater(t, asked, 3)
			require.Less(t, asked, 15)
			require.Empty(t, w.alarms)
			held := w.held[st]
			delete(w.held, st) // Its payload is there, and its frame on the line.
			w.run(r, late)
			w.held[st] = held
			w.release(st, false)
			w.run(r, time.Second)
			require.Empty(t, w.alarms)
			require.Equal(t, w.heads[st], w.cursors[st])
			require.Empty(t, r.order[0].pulls.of)
		}
		require.Equal(t, w.pulled, w.probes, "it asks for one record: what follows is on its way")
		w.requireOnce()
	}
}

// A record that the bus lost after its payload had arrived is a gap, and is pulled.
//
// Capability: Two locations: One range that stands does not stop the others (R15).
// Capability: Two locations: A record that waits for its payload is no gap.
func TestR15HeldRecordThatIsLost(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.held = true, map[geo.Stream]geo.Seq{}
	r := w.receiver()
	st := testStream(testRange, 1)
	w.run(r, time.Second)
	w.hold(st)
	w.run(r, 3*time.Second)
	require.Empty(t, w.alarms)
	w.release(st, true)
	w.run(r, 10*time.Second)
	require.Equal(t, map[string]int{AlarmGap: 1}, w.alarms)
	require.Equal(t, w.heads[st], w.cursors[st])
}

// A record that the bus lost is a gap though the one behind it is held back, and though the stream was
// held back before.
//
// Capability: Two locations: One range that stands does not stop the others (R15).
// Capability: Two locations: A record that waits for its payload is no gap.
func TestR15GapBeforeHeldRecord(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.held = true, map[geo.Stream]geo.Seq{}
	r := w.receiver()
	st := testStream(testRange, 1)
	w.run(r, time.Second)
	w.now++
	w.record(st, 0) // No frame has it.
	lost := w.heads[st]
	w.hold(st)
	w.run(r, 3*time.Second)
	require.Equal(t, map[string]int{AlarmGap: 1}, w.alarms)
	require.Equal(t, lost, w.cursors[st])
	w.release(st, false)
	w.run(r, 10*time.Second)
	require.Equal(t, w.heads[st], w.cursors[st])
	w.hold(st)
	w.run(r, 3*time.Second)
	delete(w.held, st)
	w.now++
	w.record(st, 0)
	f := w.frameOf() // The one before it is lost.
	f.Records = append(f.Records, w.outbox[st][w.heads[st].Seq])
	w.publish(f, map[geo.Stream]bool{st: true})
	w.run(r, 10*time.Second)
	require.Equal(t, map[string]int{AlarmGap: 2}, w.alarms)
	require.Equal(t, w.heads[st], w.cursors[st])
}
