package secondary

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
	"antipode/stats"
)

// twin is a source range of one account, as simple as can be: all its records in memory, in the order
// of their commit times. It publishes frames to a bus that loses, repeats and reorders them.
type twin struct {
	t       *rapid.T
	applier *Applier
	src     geo.SourceRange
	account geo.Account
	// records are the source's, in order; a recovery with loss cuts them.
	records     []twinRecord
	incarnation geo.Incarnation
	now         geo.Timestamp
	// closed is the last T of the chain of closed records, full that the next one starts a chain.
	closed geo.Timestamp
	full   bool
	// bus are all frames ever published, next the one to be delivered.
	bus  []change.Frame
	next int
	// applied are the hashes of the records that took effect at the receiver.
	applied map[geo.Stream][]geo.Hash
	stops   map[geo.Stream]struct{}
}

type twinRecord struct {
	change.Record
	bytes []byte
}

func newTwin(t *rapid.T, s *stamp.Stamp, n int) *twin {
	w := &twin{
		t: t, applier: NewApplier(s, route.First()), src: geo.SourceRange{Origin: geo.Location(fmt.Sprint("n", n)), Range: geo.FirstRange(geo.Catalog)},
		account: geo.Account(fmt.Sprint("acct", n)), now: 100, full: true,
		applied: map[geo.Stream][]geo.Hash{}, stops: map[geo.Stream]struct{}{},
	}
	gate := change.Gate{Role: change.RoleSecondary, Open: true, Epoch: geo.Epoch{Number: 1, Location: w.src.Origin}}
	submit(t, func(done func(error)) {
		s.Leader(w.src.Range).Submit(stamptest.Gate{Account: w.account, Gate: gate}, done)
	})
	return w
}

func submit(t require.TestingT, try func(done func(error))) {
	done := make(chan error, 1)
	try(func(err error) { done <- err })
	require.NoError(t, <-done)
}

func (w *twin) stream(lane int) geo.Stream {
	return geo.Stream{Account: w.account, Epoch: geo.Epoch{Number: 1, Location: w.src.Origin}, Range: w.src.Range, Lane: geo.Lane(lane)}
}

func (w *twin) draw(what string, from, to int) int { return rapid.IntRange(from, to).Draw(w.t, what) }

// of returns the records of a stream.
func (w *twin) of(st geo.Stream) (out []twinRecord) {
	for _, r := range w.records {
		if r.Stream() == st {
			out = append(out, r)
		}
	}
	return out
}

const twinLanes = 3

// commit numbers some records and publishes their frame.
func (w *twin) commit() {
	from := len(w.records)
	for range w.draw("records", 0, 3) {
		w.add(w.stream(w.draw("lane", 0, twinLanes-1)))
	}
	w.now += geo.Timestamp(w.draw("idle", 0, 1))
	w.publish(w.records[from:], w.now)
}

func (w *twin) add(st geo.Stream) {
	w.now += geo.Timestamp(w.draw("pause", 1, 3))
	rec := change.Record{
		Epoch: st.Epoch, Range: st.Range, Incarnation: w.incarnation, Lane: st.Lane, Service: geo.Catalog, Account: st.Account, Seq: 1,
		CommitTime: w.now, Partition: (keys.Partition{Service: geo.Catalog, Account: st.Account}).Append(nil),
		Ops: []change.Op{{Row: []byte{byte(st.Lane)}, Value: []byte(fmt.Sprint(w.incarnation, w.now))}},
	}
	if own := w.of(st); len(own) > 0 {
		last := own[len(own)-1]
		rec.Seq, rec.Prev = last.Seq+1, change.HashOf(last.bytes)
	}
	b, err := change.AppendRecord(nil, &rec)
	require.NoError(w.t, err)
	w.records = append(w.records, twinRecord{rec, b})
}

// publish makes a frame of records, with a closed record of the chain.
func (w *twin) publish(records []twinRecord, t geo.Timestamp) {
	f := change.Frame{Origin: w.src.Origin, Range: w.src.Range, Closed: w.closedRecord(w.full, w.closed, t)}
	for _, r := range records {
		f.Records = append(f.Records, r.bytes)
	}
	w.closed, w.full = t, false
	w.bus = append(w.bus, f)
}

// closedRecord names the heads as of t; some of them may be later ones (R12).
func (w *twin) closedRecord(full bool, t0, t geo.Timestamp) *change.Closed {
	c := &change.Closed{Origin: w.src.Origin, Range: w.src.Range, Incarnation: w.incarnation, Full: full, T0: t0, T: t}
	if full {
		c.T0, c.Descriptor = 0, 1
	}
	for lane := range twinLanes {
		st := w.stream(lane)
		var head twinRecord
		later := w.draw("later head", 0, 9) == 0
		for _, r := range w.of(st) {
			if r.CommitTime <= t || later && head.Seq > 0 {
				head = r
			}
		}
		if head.Seq > 0 && (full || head.CommitTime > t0) {
			c.Heads = append(c.Heads, change.StreamHead{
				Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: head.Seq, Hash: change.HashOf(head.bytes),
			})
		}
	}
	return c
}

// lead publishes, as a new leader of the source range does, again what follows some time, in frames whose
// closed records have former times.
func (w *twin) lead() {
	w.full = true
	at := w.draw("from", 0, len(w.records))
	for at < len(w.records) {
		to := min(len(w.records), at+w.draw("frame", 1, 4))
		w.publish(w.records[at:to], w.records[to-1].CommitTime)
		at = to
	}
	w.publish(nil, w.now)
}

// recover loses the end of the range's log. Without floor the clock forgets what it promised.
func (w *twin) recover(floor bool) {
	w.incarnation++
	kept := w.draw("kept", 0, len(w.records))
	w.records = slices.Clone(w.records[:kept])
	if !floor {
		w.now = geo.Timestamp(100)
		if kept > 0 {
			w.now = w.records[kept-1].CommitTime
		}
		w.now += geo.Timestamp(w.draw("clock", 0, 30))
	}
	w.lead()
}

// apply commits a batch at the receiver and checks what follows.
func (w *twin) apply(records [][]byte, closed *change.Closed) {
	b := &receive.Batch{Source: w.src, Closed: closed}
	for _, r := range records {
		rec, err := change.ParseRecord(r)
		require.NoError(w.t, err)
		b.Records = append(b.Records, &receive.Record{Bytes: r, Record: rec})
	}
	submit(w.t, func(done func(error)) { w.applier.Apply(b, done) })
	for _, r := range b.Records {
		if r.Outcome == receive.Applied {
			w.applied[r.Record.Stream()] = append(w.applied[r.Record.Stream()], change.HashOf(r.Bytes))
		}
	}
}

// deliver brings a frame: the next one, or any.
func (w *twin) deliver() {
	if len(w.bus) == 0 {
		return
	}
	n := w.next
	if which := w.draw("frame is", 0, 5); which == 0 || n >= len(w.bus) {
		n = w.draw("frame", 0, len(w.bus)-1)
	} else if w.next++; which == 1 {
		return // Lost.
	}
	f := w.bus[n]
	if w.draw("closed only", 0, 5) == 0 {
		f.Records = nil
	}
	w.apply(f.Records, f.Closed)
}

// pull brings the records behind a cursor from the source.
func (w *twin) pull(lane, most int) {
	st := w.stream(lane)
	own := w.of(st)
	from := min(int(w.progress().Cursors()[st].Seq), len(own))
	var records [][]byte
	for _, r := range own[from:min(len(own), from+most)] {
		records = append(records, r.bytes)
	}
	w.apply(records, nil)
}

func (w *twin) progress() cursor.Progress {
	var out cursor.Progress
	submit(w.t, func(done func(error)) {
		w.applier.Progress(w.src, func(p cursor.Progress, err error) {
			out = p
			done(err)
		})
	})
	return out
}

// holds reports whether the receiver has the records of a stream of the source up to one.
func (w *twin) holds(st geo.Stream, upTo int) bool {
	own, here := w.of(st), w.applied[st]
	if upTo > len(here) || upTo > len(own) {
		return false
	}
	for i := range upTo {
		if change.HashOf(own[i].bytes) != here[i] {
			return false
		}
	}
	return true
}

// check: a stop is a fork in truth, and while there is none, everything at or before the time served
// is held. known is the receiver's incarnation: of a recovery that it has not learned of, it
// cannot know which times were forgotten.
func (w *twin) check(floor bool) {
	p := w.progress()
	for _, s := range p.Stops {
		if _, seen := w.stops[s.Stream]; !seen && floor {
			require.False(w.t, w.holds(s.Stream, len(w.applied[s.Stream])), "%s stopped, and all that is here is at the source", s.Stream)
		}
		w.stops[s.Stream] = struct{}{}
	}
	times, ok := stats.SyncTimesOf(p, w.account)
	if !ok || len(p.Stops) > 0 {
		return
	}
	known := w.applier.stamp.Leader(w.src.Range).Machine.Known(w.src).Incarnation
	for lane := range twinLanes {
		st := w.stream(lane)
		for i, r := range w.of(st) {
			if r.CommitTime <= times.Least && (floor || r.Incarnation <= known) {
				require.True(w.t, w.holds(st, i+1), "%s #%d of %d is not here, and %d is served", st, r.Seq, r.CommitTime, times.Least)
			}
		}
	}
}

// finish brings everything, and checks that each stream is whole or stopped.
func (w *twin) finish(floor bool) {
	w.now += 1000 // Beyond all that was promised.
	for range 2 {
		w.publish(nil, w.now)
		w.apply(nil, w.closedRecord(true, 0, w.now))
		for lane := range twinLanes {
			w.pull(lane, len(w.records))
			w.check(floor)
		}
		for lane := range twinLanes {
			w.add(w.stream(lane))
		}
	}
	w.apply(nil, w.closedRecord(true, 0, w.now))
	for lane := range twinLanes {
		st := w.stream(lane)
		w.pull(lane, len(w.records))
		w.check(floor)
		if _, stopped := w.stops[st]; !stopped {
			require.True(w.t, w.holds(st, len(w.of(st))), "%s is neither whole nor stopped", st)
		}
	}
	if len(w.stops) == 0 {
		times, ok := stats.SyncTimesOf(w.progress(), w.account)
		require.True(w.t, ok)
		require.Equal(w.t, w.now, times.Least)
	}
}

func (w *twin) step(loss, floor bool) {
	switch n := w.draw("step", 0, 15); {
	case n < 5:
		w.commit()
	case n < 10:
		w.deliver()
	case n < 12:
		w.pull(w.draw("lane", 0, twinLanes-1), w.draw("most", 1, 3))
	case n < 14:
		w.apply(nil, w.closedRecord(true, 0, w.now))
	case n == 14:
		w.lead()
	case loss:
		w.recover(floor)
	}
	w.check(floor)
}

// R13, R16: frames are lost, repeated and come late, closed records of former times among them, leaders
// of the source change and send again. While the source loses nothing, no fork is reported. When it is
// recovered with loss, and gives numbers again, Last Sync Time never covers what is not held, each stream
// that differs is stopped, and no other is; also when its clock forgets what it promised, except that
// then what was served before counts as a fork too.
func TestR16ForksAreFoundByTheReceiverAlone(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog)
	n := 0
	for _, c := range []struct {
		name        string
		loss, floor bool
	}{{"no loss", false, true}, {"loss", true, true}, {"loss of the clock too", true, false}} {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n++
				w := newTwin(t, s, n)
				for range w.draw("steps", 1, 40) {
					w.step(c.loss, c.floor)
				}
				w.finish(c.floor)
				if !c.loss {
					require.Empty(t, w.stops)
				}
			})
		})
	}
}
