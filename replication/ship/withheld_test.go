package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
)

// sentOf counts the records of an account in frames.
func sentOf(t *testing.T, sent map[geo.Account]int) func(change.Frame) {
	return func(f change.Frame) {
		for _, b := range f.Records {
			h, err := change.ParseHeader(b)
			require.NoError(t, err)
			sent[h.Stream.Account]++
		}
	}
}

// R22: what the other location cannot take stays in the outbox, payload included, is named in closed records, and is not
// answered to a pull. Other accounts do not feel it. Once the other location can take it, it comes, each record once.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22WithheldStaysInTheOutbox(t *testing.T) {
	t.Parallel()
	withheld := true
	w := newWorld(t, Options{Withheld: func(st geo.Stream) bool { return withheld && st.Account == "former" }})
	w.gates("former", "other")
	former, other := lanes("former"), lanes("other")
	sent := map[geo.Account]int{}
	for range 3 {
		w.write(100, false, former...)
		w.write(100, true, former[:4]...)
		w.write(100, false, other...)
		w.drain(sentOf(t, sent))
	}
	require.Equal(t, map[geo.Account]int{"other": 3 * geo.LaneCount}, sent)
	require.Empty(t, w.pushes)
	st := geo.Stream{Account: "former", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: former[0].Lane()}
	kept, err := w.leader().Machine.Outbox(st, 1, 1<<20)
	require.NoError(t, err)
	require.Len(t, kept, 6)
	require.Empty(t, w.ship.Ready(st, 1, kept))
	require.Len(t, w.receiver.Progress(w.receiver.src, "former").Streams, geo.LaneCount)
	require.Less(t, w.receiver.syncTimeOf("former"), w.receiver.syncTimeOf("other"))
	require.LessOrEqual(t, w.step(0), withheldEvery, "it looks again soon")

	withheld = false
	w.step(withheldEvery)
	for range 20 {
		w.drain(sentOf(t, sent))
		for _, done := range w.pushes {
			done(nil)
		}
		w.pushes = nil
	}
	require.Equal(t, map[geo.Account]int{"former": 3 * (geo.LaneCount + 4), "other": 3 * geo.LaneCount}, sent)
	require.Zero(t, w.receiver.doubled)
	require.Equal(t, w.receiver.syncTimeOf("other"), w.receiver.syncTimeOf("former"))
	require.Empty(t, w.ship.holds.of)
	require.Equal(t, kept, w.ship.Ready(st, 1, kept))
	withheld = true // Of a stream that was sent, too.
	require.Empty(t, w.ship.Ready(st, 1, kept))
}

// R22: frames that were built before something is withheld are built again without it, and what is in them of other
// accounts arrives.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22RebuildLeavesOutWhatIsWithheld(t *testing.T) {
	t.Parallel()
	withheld := false
	w := newWorld(t, Options{Withheld: func(st geo.Stream) bool { return withheld && st.Account == "former" }})
	w.gates("former", "other")
	w.drain(nil)
	w.refuse = bus.ErrUnavailable
	w.write(100, false, lanes("former")...)
	w.write(100, false, lanes("other")...)
	w.step(2 * time.Millisecond)
	require.NotEmpty(t, w.ship.air.frames)
	withheld = true
	w.ship.Rebuild()
	w.refuse = nil
	sent := map[geo.Account]int{}
	w.step(time.Second)
	w.drain(sentOf(t, sent))
	require.Equal(t, map[geo.Account]int{"other": geo.LaneCount}, sent)
}

// R22: a stream that is held for its payload, and is withheld meanwhile, pushes no more payload and sends nothing, neither what
// waits for a push nor what has arrived. Once it may go on, all of it comes.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22WithheldWhileItsPayloadIsPushed(t *testing.T) {
	t.Parallel()
	for _, pushed := range []bool{true, false} {
		withheld := false
		w := newWorld(t, Options{Withheld: func(geo.Stream) bool { return withheld }, Bounds: Bounds{PushesMax: 1}})
		w.gates("former")
		w.drain(nil)
		sent := map[geo.Account]int{}
		w.write(100, true, lanes("former")[:2]...)
		w.drain(sentOf(t, sent))
		require.Len(t, w.pushes, 1, "the other lane waits")
		withheld = true
		push := w.pushes[0]
		w.pushes = nil
		if pushed {
			push(nil)
		}
		w.drain(sentOf(t, sent))
		require.Empty(t, w.pushes)
		require.Empty(t, sent)

		withheld = false
		if !pushed {
			push(nil)
		}
		w.step(withheldEvery)
		for range 20 {
			w.drain(sentOf(t, sent))
			for _, done := range w.pushes {
				done(nil)
			}
			w.pushes = nil
		}
		require.Equal(t, map[geo.Account]int{"former": 2}, sent)
		require.Zero(t, w.receiver.doubled)
		require.Empty(t, w.ship.holds.of)
	}
}
