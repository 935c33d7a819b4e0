package receive

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/bus/membus"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
)

const (
	testOrigin geo.Location = "north"
	testRange  geo.RangeID  = 3
)

var errLost = errors.New("the answer was lost")

// world is what receivers of one origin share: a source range and the range that receives it,
// both as simple as they can be, with a bus between them. It is used from one goroutine; later
// postpones what takes time.
type world struct {
	t   *testing.T
	rng *rand.Rand
	clk *clock.Manual
	bus *membus.Bus
	pub *membus.Publisher
	// durable is the bus's one durable consumer: each message goes to one of those
	// that poll it, and an acknowledgement of any of them covers those of all.
	durable bus.Consumer
	waiting []func()
	alarms  map[string]int

	// The source: a record leaves its outbox only when it is acknowledged.
	heads   map[geo.Stream]geo.Head
	outbox  map[geo.Stream]map[geo.Seq][]byte
	now     geo.Timestamp
	closedT geo.Timestamp // of the last frame

	// The receiving range. applied are the numbers in the order they took effect.
	cursors map[geo.Stream]geo.Head
	applied map[geo.Stream][]geo.Seq
	closedH map[geo.Stream]geo.Seq
	taken   geo.Timestamp
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), clk: clock.NewManual(time.Unix(1e9, 0)), alarms: map[string]int{},
		heads: map[geo.Stream]geo.Head{}, outbox: map[geo.Stream]map[geo.Seq][]byte{},
		cursors: map[geo.Stream]geo.Head{}, applied: map[geo.Stream][]geo.Seq{}, closedH: map[geo.Stream]geo.Seq{},
	}
	w.bus = membus.New(w.clk, bus.Bounds{AckWait: 5 * time.Second})
	w.pub, w.durable = w.bus.OpenPublisher(), w.bus.OpenConsumer()
	return w
}

// receiver returns one more receiver of the bus's durable consumer.
func (w *world) receiver() *Receiver {
	return New(Options{
		Origin: testOrigin, Ranges: []geo.RangeID{testRange}, Consumer: w.durable, Source: w, Applier: w, Clock: w.clk,
		Incarnation: w.bus.Incarnation(), Logger: slog.New(slog.DiscardHandler), Alarm: func(reason string) { w.alarms[reason]++ },
	})
}

// later runs f some steps of the world from now.
func (w *world) later(f func()) { w.waiting = append(w.waiting, f) }

// deliverSome runs some of the postponed functions, in any order.
func (w *world) deliverSome() {
	for range w.rng.IntN(3) {
		if n := len(w.waiting); n > 0 {
			i := w.rng.IntN(n)
			f := w.waiting[i]
			w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
			f()
		}
	}
}

// write commits some records at the source and publishes their frame.
func (w *world) write() {
	f := change.Frame{Origin: testOrigin, Range: testRange, Closed: &change.Closed{Origin: testOrigin, Range: testRange, T0: w.closedT}}
	changed := map[geo.Stream]bool{}
	for range 1 + w.rng.IntN(3) {
		w.now++
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: testOrigin}, Range: testRange, Lane: geo.Lane(w.rng.IntN(4))}
		at := w.heads[st]
		b, err := change.AppendRecord(nil, &change.Record{
			Epoch: st.Epoch, Range: st.Range, Lane: st.Lane, Account: st.Account, Seq: at.Seq + 1, Prev: at.Hash, CommitTime: w.now,
		})
		require.NoError(w.t, err)
		w.heads[st] = geo.Head{Seq: at.Seq + 1, Hash: change.HashOf(b)}
		if w.outbox[st] == nil {
			w.outbox[st] = map[geo.Seq][]byte{}
		}
		w.outbox[st][at.Seq+1] = b
		changed[st] = true
		f.Records = append(f.Records, b)
	}
	w.closedT = w.now
	f.Closed.T, f.Closed.Heads = w.now, w.closedHeads(changed)
	require.NoError(w.t, w.pub.Publish("geo", change.AppendFrame(nil, &f), func(error) {}))
	w.bus.Deliver()
}

func (w *world) closedHeads(of map[geo.Stream]bool) []change.StreamHead {
	var out []change.StreamHead
	for lane := range geo.Lane(4) {
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: testOrigin}, Range: testRange, Lane: lane}
		if of[st] {
			out = append(out, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: lane, Seq: w.heads[st].Seq})
		}
	}
	return out
}

// Records implements Source.
func (w *world) Records(s geo.Stream, from geo.Seq, _ int, done func([][]byte, error)) {
	w.later(func() {
		var out [][]byte
		for n := from; w.outbox[s][n] != nil && len(out) < 3; n++ {
			out = append(out, w.outbox[s][n])
		}
		w.answer(func(err error) { done(out, err) })
	})
}

// Closed implements Source.
func (w *world) Closed(_ geo.RangeID, done func(*change.Closed, error)) {
	w.later(func() {
		all := map[geo.Stream]bool{}
		for st := range w.heads {
			all[st] = true
		}
		c := &change.Closed{Origin: testOrigin, Range: testRange, Full: true, T: w.now, Heads: w.closedHeads(all)}
		w.answer(func(err error) { done(c, err) })
	})
}

// Acknowledge implements Source: acknowledged records leave the outbox.
func (w *world) Acknowledge(_ geo.RangeID, cursors map[geo.Stream]geo.Head, done func(error)) {
	w.later(func() {
		for st, h := range cursors {
			require.LessOrEqual(w.t, h.Seq, w.cursors[st].Seq, "acknowledged what is not committed")
			for n := range w.outbox[st] {
				if n <= h.Seq {
					delete(w.outbox[st], n)
				}
			}
		}
		w.answer(done)
	})
}

// Chunk implements Source.
func (w *world) Chunk(extent.Ref, func([]byte, error)) { w.t.Fatal("no record here names a chunk") }

// answer gives an answer later, or loses it.
func (w *world) answer(done func(error)) {
	var err error
	if w.rng.IntN(8) == 0 {
		err = errLost
	}
	w.later(func() { done(err) })
}

// Apply implements Applier, by the rules of secondary.Applier: in order, each once.
func (w *world) Apply(b *Batch, done func(error)) {
	w.later(func() {
		if w.rng.IntN(10) == 0 {
			w.later(func() { done(errLost) }) // It never came.
			return
		}
		stopped := map[geo.Stream]bool{}
		for _, r := range b.Records {
			st := r.Record.Stream()
			at := w.cursors[st]
			switch {
			case stopped[st]:
				r.Outcome = Gap
			case r.Record.Seq <= at.Seq:
				r.Outcome = Duplicate
			case r.Record.Seq > at.Seq+1:
				r.Outcome, stopped[st] = Gap, true
			default:
				require.Equal(w.t, at.Hash, r.Record.Prev)
				r.Outcome = Applied
				w.cursors[st] = geo.Head{Seq: r.Record.Seq, Hash: change.HashOf(r.Bytes)}
				w.applied[st] = append(w.applied[st], r.Record.Seq)
			}
		}
		b.ClosedTaken = true
		if c := b.Closed; c != nil && c.T > w.taken {
			if b.ClosedTaken = c.Full || c.T0 <= w.taken && w.taken > 0; b.ClosedTaken {
				w.taken = c.T
				for _, h := range c.Heads {
					w.closedH[c.Stream(h)] = max(w.closedH[c.Stream(h)], h.Seq)
				}
			}
		}
		w.answer(done)
	})
}

// Progress implements Applier.
func (w *world) Progress(src geo.SourceRange) (cursor.Progress, bool) {
	streams := map[geo.Stream]cursor.StreamProgress{}
	for st, h := range w.cursors {
		streams[st] = cursor.StreamProgress{Stream: st, Applied: h}
	}
	for st, n := range w.closedH {
		if at := w.cursors[st]; at.Seq < n {
			streams[st] = cursor.StreamProgress{Stream: st, Applied: at, Behind: n}
		}
	}
	return cursor.Progress{Source: src, Streams: slices.Collect(maps.Values(streams))}, true
}

// PutPayload implements Applier.
func (w *world) PutPayload(extent.Ref, []byte, func(error)) {
	w.t.Fatal("no record here names a chunk")
}

// HasPayload implements Applier.
func (w *world) HasPayload(extent.Ref) bool { return true }

// whole returns what is missing, "" for nothing: every record of the source must be applied and
// covered by a closed record, and have left the outbox and the bus.
func (w *world) whole() string {
	for st, h := range w.heads {
		if w.cursors[st] != h || len(w.outbox[st]) > 0 {
			return fmt.Sprintf("%s at %d of %d, %d in the outbox", st, w.cursors[st].Seq, h.Seq, len(w.outbox[st]))
		}
	}
	if w.taken != w.now || w.bus.Stored() > 0 {
		return fmt.Sprintf("closed %d of %d, %d messages in the bus", w.taken, w.now, w.bus.Stored())
	}
	return ""
}

// requireOnce checks that each stream took effect in order, each record once.
func (w *world) requireOnce() {
	for st, h := range w.heads {
		require.Len(w.t, w.applied[st], int(h.Seq))
		for i, n := range w.applied[st] {
			require.Equal(w.t, geo.Seq(i+1), n)
		}
	}
}
