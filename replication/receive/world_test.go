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
	"antipode/stamp/kv"
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
	closedT map[geo.RangeID]geo.Timestamp // of the last frame of each range

	// The receiving ranges. applied are the numbers in the order they took effect.
	cursors map[geo.Stream]geo.Head
	applied map[geo.Stream][]geo.Seq
	closedH map[geo.Stream]geo.Seq
	taken   map[geo.RangeID]geo.Timestamp

	// calm loses no answer and gives each at once when it is delivered.
	calm bool
	// mute are ranges whose applier does not answer; stuck is what it was given.
	mute  map[geo.RangeID]bool
	stuck map[geo.RangeID][]func()
	// idle is true while no account is received.
	idle bool
	// payload is the size of a record's value.
	payload int
	// pulled counts the calls of Records; pulls those of each stream.
	pulled int
	pulls  map[geo.Stream]int
	// asked are the bytes that calls of Records under way ask for, askedMost the most of them, and
	// probes the calls that asked for one record.
	asked, askedMost, probes int
	// hung are ranges of which the source answers no call of Records.
	hung map[geo.RangeID]bool
	payloads
	// held is the record of a stream that the source has not sent, and does not answer with, since its payload
	// is on its way.
	held map[geo.Stream]geo.Seq
	settlements
	// spoil, if it is set, changes the bytes of a record on their way, over the bus or pulled.
	spoil func(st geo.Stream, n geo.Seq, b []byte, pulled bool) []byte
	// laterClosed are ranges whose closed records are of a later version.
	laterClosed map[geo.RangeID]bool
	// older is true while the node that evaluates knows no closed record.
	older bool
	// wholes counts the calls of Closed.
	wholes map[geo.RangeID]int
	// outcome, if it is set, may be an outcome of a record that would be applied; 0 for none.
	outcome func(*Record) Outcome
	// refuse are the streams of which no record is taken (R7).
	refuse map[geo.Stream]bool
	// ended are the accounts that have no secondary here any more.
	ended map[geo.Account]geo.Epoch
	// ahead, if it is set, is how much too far ahead of the clock here a time is (R6).
	ahead func(geo.Timestamp) time.Duration
	// acked counts the cursors in acknowledgements, fulls those that were full; loaded counts
	// the streams in answers of Progress.
	acked, fulls, loaded int
	// ackErr is the answer to acknowledgements; keep lets the outbox keep what is acknowledged.
	ackErr error
	keep   bool
	// rest, if it is set, answers what asks a range at rest.
	rest func(id geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error))
	// resumed counts the calls of Resume.
	resumed int
	// compare, if it is set, is how the source answers cursors; stops are what is stopped here. stopFails counts the stops
	// that are still to be refused.
	compare   func(cursors map[geo.Stream]Cursor, full bool) []Mismatch
	stops     map[geo.Stream]change.Stop
	stopFails int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), clk: clock.NewManual(time.Unix(1e9, 0)), alarms: map[string]int{},
		heads: map[geo.Stream]geo.Head{}, outbox: map[geo.Stream]map[geo.Seq][]byte{},
		cursors: map[geo.Stream]geo.Head{}, applied: map[geo.Stream][]geo.Seq{}, closedH: map[geo.Stream]geo.Seq{},
		closedT: map[geo.RangeID]geo.Timestamp{}, taken: map[geo.RangeID]geo.Timestamp{},
		wholes: map[geo.RangeID]int{}, pulls: map[geo.Stream]int{}, mute: map[geo.RangeID]bool{}, stuck: map[geo.RangeID][]func(){},
	}
	w.bus = membus.New(w.clk, bus.Bounds{AckWait: 5 * time.Second})
	w.pub, w.durable = w.bus.OpenPublisher(), w.bus.OpenConsumer()
	return w
}

// receiver returns one more receiver of the bus's durable consumer.
func (w *world) receiver() *Receiver { return New(w.options(testRange)) }

func (w *world) options(ids ...geo.RangeID) Options {
	return Options{
		StandAfter: 500 * time.Millisecond,
		Origin:     testOrigin, Ranges: ids, Consumer: w.durable, Source: w, Applier: w, Clock: w.clk,
		Incarnation: w.bus.Incarnation(), Logger: slog.New(slog.DiscardHandler), Alarm: func(reason string) { w.alarms[reason]++ },
	}
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

// deliverAll runs the postponed functions in their order, and those that they postpone.
func (w *world) deliverAll() {
	for len(w.waiting) > 0 {
		f := w.waiting[0]
		w.waiting = w.waiting[1:]
		f()
	}
}

func testStream(id geo.RangeID, lane geo.Lane) geo.Stream {
	return geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: testOrigin}, Range: id, Lane: lane}
}

// write commits some records at the source and publishes their frame.
func (w *world) write() { w.writeTo(testRange, 1+w.rng.IntN(3)) }

// writeTo commits n records of a range, and a closed record.
func (w *world) writeTo(id geo.RangeID, n int) {
	f := change.Frame{Origin: testOrigin, Range: id, Closed: &change.Closed{Origin: testOrigin, Range: id, T0: w.closedT[id]}}
	changed := map[geo.Stream]bool{}
	w.now++
	for range n {
		w.now++
		st := testStream(id, geo.Lane(w.rng.IntN(4)))
		w.record(st, w.payload)
		changed[st] = true
		f.Records = append(f.Records, w.sent(st, w.heads[st].Seq, false))
	}
	w.publish(f, changed)
}

// publish puts a frame on the bus, with a closed record that names the heads of some streams.
func (w *world) publish(f change.Frame, changed map[geo.Stream]bool) {
	id := f.Range
	w.closedT[id] = w.now
	f.Closed.T, f.Closed.Heads = w.now, w.closedHeads(id, changed)
	if w.laterClosed[id] {
		f.Closed, f.LaterClosed = nil, []byte{3, 0xff}
	}
	require.NoError(w.t, w.pub.Publish(fmt.Sprintf("geo.%d", id), change.AppendFrame(nil, &f), func(error) {}))
	w.bus.Deliver()
}

// record commits a record at the source, of so many bytes and with these chunks.
func (w *world) record(st geo.Stream, size int, chunks ...extent.Ref) {
	at := w.heads[st]
	b, err := change.AppendRecord(nil, &change.Record{
		Epoch: st.Epoch, Range: st.Range, Lane: st.Lane, Account: st.Account, Seq: at.Seq + 1, Prev: at.Hash, CommitTime: w.now,
		Ops: []change.Op{{Value: make([]byte, size)}}, Chunks: chunks,
	})
	require.NoError(w.t, err)
	w.heads[st] = geo.Head{Seq: at.Seq + 1, Hash: change.HashOf(b)}
	if w.outbox[st] == nil {
		w.outbox[st] = map[geo.Seq][]byte{}
	}
	w.outbox[st][at.Seq+1] = b
}

func (w *world) closedHeads(id geo.RangeID, of map[geo.Stream]bool) []change.StreamHead {
	var out []change.StreamHead
	for lane := range geo.Lane(4) {
		st := testStream(id, lane)
		if of[st] {
			out = append(out, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: lane, Seq: w.heads[st].Seq})
		}
	}
	return out
}

// Apply implements Applier, by the rules of secondary.Applier: in order, each once.
func (w *world) Apply(b *Batch, done func(error)) {
	id := b.Source.Range
	if w.mute[id] {
		w.stuck[id] = append(w.stuck[id], func() { w.Apply(b, done) })
		return
	}
	w.later(func() {
		if !w.calm && w.rng.IntN(10) == 0 {
			w.later(func() { done(errLost) }) // It never came.
			return
		}
		stopped := map[geo.Stream]bool{}
		for _, r := range b.Records {
			st := r.Record.Stream()
			at := w.cursors[st]
			_, halted := w.stops[st]
			switch {
			case halted:
				r.Outcome = Stopped
			case w.refuse[st]:
				r.Outcome = Refused
			case stopped[st]:
				r.Outcome = Gap
			case r.Record.Seq <= at.Seq:
				r.Outcome = Duplicate
			case r.Record.Seq > at.Seq+1:
				r.Outcome, stopped[st] = Gap, true
			case w.ahead != nil && w.ahead(r.Record.CommitTime) > 0:
				r.Outcome, r.Ahead, stopped[st] = Wait, w.ahead(r.Record.CommitTime), true
			case slices.ContainsFunc(r.Record.Chunks, func(ref extent.Ref) bool { return !w.HasPayload(ref) }):
				r.Outcome, stopped[st] = Wait, true
			case w.outcome != nil && w.outcome(r) != 0:
				r.Outcome, stopped[st] = w.outcome(r), true
			default:
				require.Equal(w.t, at.Hash, r.Record.Prev)
				r.Outcome = Applied
				w.cursors[st] = geo.Head{Seq: r.Record.Seq, Hash: change.HashOf(r.Bytes)}
				w.applied[st] = append(w.applied[st], r.Record.Seq)
			}
		}
		b.ClosedTaken = true
		if b.ClosedLater = w.older && b.Closed != nil; b.ClosedLater {
			b.ClosedTaken = false
		} else if c := b.Closed; c != nil && c.T > w.taken[id] {
			joins := c.Full || c.T0 <= w.taken[id] && w.taken[id] > 0
			if joins && w.ahead != nil {
				b.ClosedAhead = w.ahead(c.T)
			}
			if b.ClosedTaken = joins && b.ClosedAhead == 0; b.ClosedTaken {
				w.taken[id] = c.T
				for _, h := range c.Heads {
					w.closedH[c.Stream(h)] = max(w.closedH[c.Stream(h)], h.Seq)
				}
			}
		}
		w.answer(done)
	})
}

// unmute lets the applier of a range answer what it was given.
func (w *world) unmute(id geo.RangeID) {
	stuck := w.stuck[id]
	w.mute[id], w.stuck[id] = false, nil
	for _, f := range stuck {
		f()
	}
}

// Progress implements Applier.
func (w *world) Progress(src geo.SourceRange, done func(cursor.Progress, error)) {
	w.later(func() {
		p := w.progress(src)
		w.answer(func(err error) { done(p, err) })
	})
}

func (w *world) progress(src geo.SourceRange) cursor.Progress {
	streams := map[geo.Stream]cursor.StreamProgress{}
	for st, h := range w.cursors {
		if st.Range != src.Range {
			continue
		}
		streams[st] = cursor.StreamProgress{Stream: st, Applied: h}
	}
	for st, n := range w.closedH {
		if at := w.cursors[st]; st.Range == src.Range && at.Seq < n {
			streams[st] = cursor.StreamProgress{Stream: st, Applied: at, Behind: n}
		}
	}
	w.loaded += len(streams)
	p := cursor.Progress{Source: src, Ended: w.ended, Streams: slices.Collect(maps.Values(streams))}
	for st, why := range w.stops {
		if st.Range == src.Range {
			p.Stops = append(p.Stops, cursor.StreamStop{Stream: st, Stop: why})
		}
	}
	return p
}

// Stop implements Applier.
func (w *world) Stop(st geo.Stream, why change.Stop, done func(error)) {
	if w.stops == nil {
		w.t.Fatalf("%s stopped: %s", st, why.Reason)
	}
	w.later(func() {
		if w.stopFails > 0 {
			w.stopFails--
			done(kv.ErrBusy)
			return
		}
		if _, did := w.stops[st]; !did {
			w.stops[st] = why
		}
		w.answer(done)
	})
}

// Resume implements Applier.
func (w *world) Resume(st geo.Stream, done func(error)) {
	w.resumed++
	w.later(func() {
		if w.stops[st].Reason == change.StopVersion {
			delete(w.stops, st)
		}
		w.answer(done)
	})
}

// whole returns what is missing, "" for nothing: every record of the source must be applied and
// covered by a closed record, and have left the outbox and the bus.
func (w *world) whole() string {
	for st, h := range w.heads {
		if w.cursors[st] != h || len(w.outbox[st]) > 0 {
			return fmt.Sprintf("%s at %d of %d, %d in the outbox", st, w.cursors[st].Seq, h.Seq, len(w.outbox[st]))
		}
	}
	if !maps.Equal(w.taken, w.closedT) || w.bus.Stored() > 0 {
		return fmt.Sprintf("closed %d of %d, %d messages in the bus", w.taken, w.closedT, w.bus.Stored())
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

// Expects implements Applier.
func (w *world) Expects(geo.SourceRange) bool { return !w.idle }
