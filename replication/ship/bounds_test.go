package ship

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/stamptest"
)

// wide is a line on which as much may be under way as on any.
var wide = Bounds{FlyingBytesFirst: 8 << 20}

// countReads counts the reads of the outbox.
func (w *world) countReads() *int {
	reads, read := 0, w.ship.read
	w.ship.read = func(s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
		reads++
		return read(s, from, bytesMax)
	}
	return &reads
}

// Memory does not grow with a slow link (invariant 8): while the bus is full, 8 MiB are written; the queue
// stays at QueueBytesMax, what is dropped is counted, and all of it arrives once, from the outbox, when
// there is room.
func TestQueueBytesMax(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Bounds: Bounds{QueueBytesMax: 1 << 20}})
	w.gates("a")
	parts := lanes("a")
	w.write(100, false, parts...)
	w.drain(nil)
	reached := 0
	for i := range 128 {
		w.refuse = bus.ErrFull
		if i%32 == 31 {
			w.refuse = nil // Some frames leave: the queue fills again behind a backlog.
		}
		w.write(64<<10, false, parts[i%len(parts)])
		w.step(time.Millisecond)
		require.LessOrEqual(t, w.ship.queue.size, 1<<20)
		reached = max(reached, w.ship.queue.size)
		if w.ship.backlog != nil {
			require.LessOrEqual(t, w.ship.backlog.ahead, w.ship.o.AheadBytesMax+64<<10+1000)
		}
	}
	require.Greater(t, reached, 900<<10)
	dropped := w.ship.Dropped()
	require.Positive(t, dropped.Times)
	require.GreaterOrEqual(t, dropped.Records, 12*dropped.Times)
	require.Greater(t, dropped.Bytes, dropped.Records*64<<10)
	w.refuse = nil
	w.drain(nil)
	w.complete()
	require.Zero(t, w.receiver.doubled, "bytes that crossed twice")
}

// complete requires that the receiver has everything and knows it.
func (w *world) complete() {
	heads, last := w.leader().Machine.Heads()
	for st, head := range heads {
		require.Equal(w.t, head, w.receiver.Applied(st), "%s", st)
	}
	require.Equal(w.t, last, w.receiver.syncTime())
	require.Zero(w.t, w.receiver.unjoined)
}

// A bus that is full for long costs nothing (R15): a publisher whose window is used up is asked again
// without a read of the outbox; a bus that refuses costs one frame per attempt, at growing pauses, and no
// read. Nothing that it took crosses twice.
func TestFullBus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Bounds: wide})
	w.gates("a")
	parts := lanes("a")
	for range 32 {
		w.write(16<<10, false, parts...)
	}
	reads := w.countReads()
	w.step(0)
	require.Len(t, w.flying, w.ship.o.FlyingMax)
	w.arrive(nil)

	w.refuse = bus.ErrFull
	w.step(0)
	before := *reads
	for range 3000 { // A minute.
		require.LessOrEqual(t, w.step(blockedPause), blockedPause)
	}
	require.Equal(t, before, *reads, "reads of the outbox while the window is used up")

	w.refuse = nil
	w.step(0)
	w.answer(fmt.Errorf("the store is full: %w", bus.ErrFull)) // Asynchronously, as JetStream does.
	before, w.published, w.bytes = *reads, 0, 0
	for range 3000 {
		w.step(blockedPause)
		require.LessOrEqual(t, len(w.flying), 1)
		w.answer(bus.ErrFull)
	}
	require.Equal(t, before, *reads, "reads of the outbox while the bus refuses")
	require.InDelta(t, 40, w.published, 5, "attempts in a minute")
	require.Less(t, w.bytes, 50*change.FrameBytesMax)
	w.drain(nil)
	for range 100 {
		w.drain(nil)
		w.step(100 * time.Millisecond)
	}
	w.complete()
	require.Zero(t, w.receiver.doubled, "bytes that crossed twice")
}

// What is under way is bounded in frames and in bytes; a frame above the bound flies alone.
func TestFlyingMax(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Bounds: Bounds{FlyingMax: 3, FlyingBytesMax: 1 << 20}})
	w.gates("a")
	parts := lanes("a")
	w.write(100<<10, false, parts...)
	w.step(0)
	require.Len(t, w.flying, 3)
	w.drain(nil)
	w.write(800<<10, false, parts[0], parts[1], parts[2])
	w.write(1<<20, false, parts[0])
	w.write(1<<20, false, parts[0])
	flew := map[int]int{}
	for range 10 {
		w.step(time.Second)
		flew[len(w.flying)]++
		w.arrive(nil)
	}
	require.Positive(t, flew[2], "two frames of 800 KiB")
	require.Zero(t, flew[3])
	w.drain(nil)
	w.complete()
}

// A publish that failed is sent again, with the same bytes and alone until one succeeds; what the bus has
// confirmed is not (item 10): 16 frames fly, the third and the fifth fail.
func TestFailedPublishesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Bounds: wide})
	w.gates("a")
	parts := lanes("a")
	w.write(250<<10, false, parts[:16]...)
	w.step(0)
	require.Len(t, w.flying, 16)
	for i, p := range w.flying {
		if i == 2 || i == 4 {
			p.done(bus.ErrUnavailable)
			continue
		}
		w.receiver.take(&p.frame)
		p.done(nil)
	}
	first := w.flying
	w.flying = nil
	w.step(0)
	w.step(100 * time.Millisecond)
	require.Empty(t, w.flying, "before RetryAfter")
	w.step(100 * time.Millisecond)
	require.Len(t, w.flying, 1, "the probe")
	require.Equal(t, first[2].frame, w.flying[0].frame)
	w.arrive(nil)
	w.step(0)
	require.Len(t, w.flying, 1)
	require.Equal(t, first[4].frame, w.flying[0].frame)
	w.arrive(nil)
	require.Zero(t, w.receiver.doubled)
}

// The read-ahead from the outbox is bounded for all streams together. Records of many streams leave in
// commit order all the same, each once (R12, invariant 8): 640 streams with six records of 4 KiB.
func TestAheadBytesMax(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	const aheadMax = 64 << 10
	w := newWorld(t, Options{Bounds: Bounds{AheadBytesMax: aheadMax}})
	var accounts []geo.Account
	var parts []keys.Partition
	for i := range 20 {
		a := geo.Account(fmt.Sprintf("a%d", i))
		accounts, parts = append(accounts, a), append(parts, lanes(a)...)
	}
	w.gates(accounts...)
	for range 6 {
		w.write(4<<10, false, parts...)
	}
	var last geo.Timestamp
	records, most := 0, 0
	w.drain(func(f change.Frame) {
		for _, b := range f.Records {
			h, err := change.ParseHeader(b)
			require.NoError(t, err)
			require.Greater(t, h.CommitTime, last)
			last = h.CommitTime
			records++
		}
		if w.ship.backlog != nil {
			most = max(most, w.ship.backlog.ahead)
		}
	})
	require.Equal(t, 6*len(parts), records)
	require.LessOrEqual(t, most, aheadMax+5<<10)
	require.Greater(t, most, aheadMax/2)
	w.complete()
}

// Payload on its way is bounded in number and in bytes; other streams wait, held back, and go in turn. What is above the
// bound by itself goes alone.
func TestPushesMax(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bounds         Bounds
		atOnce, rounds int
	}{"number": {Bounds{PushesMax: 3}, 3, 3}, "bytes": {Bounds{PushBytesMax: 3*7 + 6}, 3, 3}, "above the bound": {Bounds{PushBytesMax: 6}, 1, 8}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Bounds: c.bounds})
			w.gates("a")
			parts := lanes("a")
			w.write(10, true, parts[:8]...) // Seven bytes of payload each.
			w.step(0)
			require.Len(t, w.pushes, c.atOnce)
			rounds := 0
			for len(w.pushes) > 0 {
				rounds++
				require.LessOrEqual(t, len(w.pushes), c.atOnce)
				pushes := w.pushes
				w.pushes = nil
				for _, done := range pushes {
					done(nil)
				}
				w.step(time.Millisecond)
			}
			require.Equal(t, c.rounds, rounds)
			w.drain(nil)
			w.complete()
		})
	}
}

// While large payload takes all the room that it has, small payload is pushed at once, and the other way round.
func TestSmallPayloadHasRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, then int }{"small beside large": {SmallPush + 1, 7}, "large beside small": {7, SmallPush + 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Bounds: Bounds{PushesMax: 2}})
			w.gates("a")
			parts := lanes("a")
			w.writePayload(10, make([]byte, c.first), parts[:4]...)
			w.step(0)
			require.Len(t, w.pushes, 2)
			w.writePayload(10, make([]byte, c.then), parts[4])
			w.step(time.Millisecond)
			w.step(10 * time.Millisecond)
			require.Len(t, w.pushes, 3)
			w.pushes[2](nil)
			w.pushes = w.pushes[:2]
			w.drain(nil)
			st := geo.Stream{Account: "a", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: parts[4].Lane()}
			require.EqualValues(t, 1, w.receiver.Applied(st).Seq)
			for len(w.pushes) > 0 {
				pushes := w.pushes
				w.pushes = nil
				for _, done := range pushes {
					done(nil)
				}
				w.step(time.Millisecond)
			}
			w.drain(nil)
			w.complete()
		})
	}
}

// 1,000 accounts with 32 lanes each: no frame is above the maximum of the bus, the first has the full closed
// record or, if it is too large, one that lets the receiver pull it; and at rest the streams cost far less
// than 100 KB/s (item 12): closed records name what moved, not what is there.
//
// Capability: Two locations: A backlog drains with Last Sync Time moving (R12).
// Capability: Two locations: What crosses at rest follows what moved (R12).
func TestR12ManyStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	var accounts []geo.Account
	n := 1000
	if testing.Short() {
		n = 200
	}
	for i := range n {
		accounts = append(accounts, geo.Account(fmt.Sprintf("account%04d", i)))
	}
	w.gates(accounts...)
	for i := range accounts {
		w.write(10, false, lanes(accounts[i])...)
	}
	full := 0
	w.drain(func(f change.Frame) {
		if f.Closed.Full {
			full++
		}
		require.Equal(t, f.Closed.T, w.receiver.syncTime())
	})
	require.Equal(t, 1, full)
	w.complete()

	w.acknowledge()
	stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Closed{}) // The first of a later time is full.
	w.step(200 * time.Millisecond)
	w.arrive(nil)
	w.bytes = 0
	for range 50 { // Ten seconds at rest: a closed time each 200 ms.
		stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Closed{})
		w.step(200 * time.Millisecond)
		w.arrive(nil)
	}
	t.Logf("%d bytes in ten seconds", w.bytes)
	require.Less(t, w.bytes, 10_000)
	w.complete()

	w.open(Options{Bounds: Bounds{FullBytesMax: n * 256}}) // A new leader with a smaller bound.
	w.acknowledge()
	for range 10 { // Forty frames.
		w.write(64<<10, false, lanes(accounts[0])[:16]...)
	}
	pulled, asOf := 0, geo.Timestamp(0)
	w.drain(func(f change.Frame) {
		require.False(t, f.Closed.Full)
		if w.receiver.unjoined > 0 {
			pulled, w.receiver.unjoined = pulled+1, 0
			c, err := w.ship.Full()
			require.NoError(t, err)
			require.Len(t, c.Heads, n*geo.LaneCount)
			w.receiver.close(c)
			asOf = c.T
		} else if f.Closed.T >= asOf {
			require.Equal(t, f.Closed.T, w.receiver.syncTime()) // It moves on once what was under way is there.
		}
	})
	require.Equal(t, 1, pulled)
	w.complete()
}

// A pull of a stream that is held back ends before the record whose payload is on its way. With that record
// the other location would fetch the payload over the link once more. Once the payload is there, or its push
// has failed, all of it may be had.
//
// Capability: Two locations: A narrow line between the locations.
func TestR14PullsEndBeforeHeldPayload(t *testing.T) {
	t.Parallel()
	for name, pushed := range map[string]error{"arrived": nil, "failed": bus.ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.gates("a")
			part := lanes("a")[:1]
			w.write(10, false, part...)
			w.step(0)
			w.write(10, true, part...)
			w.write(10, false, part...)
			w.step(time.Millisecond)
			w.step(10 * time.Millisecond)
			require.Len(t, w.pushes, 1)
			st := geo.Stream{Account: "a", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: part[0].Lane()}
			ready := func(from geo.Seq) int {
				all, err := w.ship.read(st, from, 1<<20)
				require.NoError(t, err)
				return len(w.ship.Ready(st, from, all))
			}
			require.Equal(t, 1, ready(1), "of three")
			require.Zero(t, ready(2))
			require.Zero(t, ready(3))
			w.pushes[0](pushed)
			w.step(time.Millisecond)
			require.Equal(t, 3, ready(1))
			require.Equal(t, 1, ready(3))
			w.drain(nil)
			w.complete()
		})
	}
}
