package location

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/primary"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/replication/verify"
	"antipode/secondary"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// taking is one stream from north to south, whose two ends differ and are settled for either side. What is asked,
// answered, compared, read and committed between them may be lost, late, repeated and in any order.
type taking struct {
	t            *rapid.T
	north, south *stamp.Stamp
	ship         *ship.Shipper
	applier      *secondary.Applier
	st           geo.Stream
	// units are partitions of the stream, of which each is taken whole.
	units   [2]keys.Partition
	written int
	asked   []takingAnswer
	looked  []change.Cursor
	// differ are units that a comparison found to differ, read what was read of them at south then, ends the ends that a
	// comparison asked for.
	differ []takingUnit
	read   []primary.Take
	ends   []takingEnd
	// had is what south had at each cursor at which it was stopped.
	had map[geo.Head]takingRows
	// since are the units that clients have written since a settlement for south's side began, by its base.
	since map[geo.Head]map[int]bool
	// history is what north had at each of its records. saved is what south may fall back to, and taken the record at its
	// cursor now.
	history []takingState
	saved   []takingSaved
	taken   []byte
	below   geo.Seq
	// kept counts the units that were taken.
	kept *int
}

// takingRows are rows by their keys.
type takingRows map[string]string

type takingState struct {
	hash geo.Hash
	rows takingRows
}

type takingSaved struct {
	rows   takingRows
	record []byte
	why    change.Stop
}

type takingAnswer struct {
	cursor receive.Cursor
	base   geo.Head
	answer []ship.Mismatch
}

type takingUnit struct {
	base geo.Head
	unit int
}

// takingEnd is the end of a settlement, which south settled from the same base, or from an earlier one again.
type takingEnd struct {
	base geo.Head
	same bool
}

const takingRowsOfUnit = 2

func (w *taking) draw(what string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, what) }

func (w *taking) submit(s *stamp.Stamp, c ranges.Command) {
	w.await(func(done func(error)) { s.Leader(w.st.Range).Submit(c, done) })
}

func (w *taking) await(try func(done func(error))) {
	done := make(chan error, 1)
	try(func(err error) { done <- err })
	require.NoError(w.t, <-done)
}

func (w *taking) key(unit, row int) []byte {
	return append(w.units[unit].Append(nil), byte('a'+row))
}

// rows returns the rows of one end.
func (w *taking) rows(s *stamp.Stamp) takingRows {
	out := takingRows{}
	require.NoError(w.t, s.Read(w.t.Context(), w.st.Range, func(state ranges.State) error {
		clear(out)
		for u := range w.units {
			for r := range takingRowsOfUnit {
				v, ok, err := state.Get(w.key(u, r))
				if err != nil {
					return err
				}
				if ok {
					out[string(w.key(u, r))] = string(v)
				}
			}
		}
		return nil
	}))
	return out
}

// of returns the rows of a unit.
func (w *taking) of(rows takingRows, unit int) takingRows {
	out := takingRows{}
	for r := range takingRowsOfUnit {
		if v, ok := rows[string(w.key(unit, r))]; ok {
			out[string(w.key(unit, r))] = v
		}
	}
	return out
}

func (w *taking) cursor() change.Cursor { return w.south.Leader(w.st.Range).Machine.Cursor(w.st) }

func (w *taking) head() geo.Head { return w.north.Leader(w.st.Range).Machine.Head(w.st) }

func (w *taking) stopAt(s *stamp.Stamp) change.Stop {
	why, _ := s.Leader(w.st.Range).Machine.Stopped(w.st)
	return why
}

// write has a client change some rows of a unit at north.
func (w *taking) write() {
	w.written++
	unit := w.draw("unit", len(w.units))
	rec := change.Record{}
	first := w.draw("row", takingRowsOfUnit)
	for r := first; r < takingRowsOfUnit; r++ {
		op := change.Op{Row: []byte{byte('a' + r)}, Value: fmt.Appendf(nil, "n%d", w.written)}
		if w.draw("delete", 4) == 0 {
			op = change.Op{Row: op.Row, Delete: true}
		}
		rec.Ops = append(rec.Ops, op)
		if w.draw("more rows", 2) == 0 {
			break
		}
	}
	if why := w.stopAt(w.north); why.Reason == change.StopTaking {
		if w.since[why.Here] == nil {
			w.since[why.Here] = map[int]bool{}
		}
		w.since[why.Here][unit] = true
	}
	w.submit(w.north, stamptest.Change{Partition: w.units[unit], Record: rec})
}

// apply applies records at south.
func (w *taking) apply(records ...[]byte) {
	b := &receive.Batch{Source: w.st.Source()}
	for _, r := range records {
		rec, err := change.ParseRecord(r)
		require.NoError(w.t, err)
		b.Records = append(b.Records, &receive.Record{Bytes: r, Record: rec})
	}
	w.await(func(done func(error)) { w.applier.Apply(b, done) })
	for _, r := range b.Records {
		if r.Outcome == receive.Applied {
			w.taken = r.Bytes
		}
	}
}

func (w *taking) deliver(from geo.Seq, most int) {
	records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, from, 1<<20)
	require.NoError(w.t, err)
	if records = records[:min(len(records), most)]; len(records) > 0 {
		w.apply(records...)
	}
}

// forge applies a record at south that north does not have.
func (w *taking) forge() {
	at := w.cursor()
	if w.stopAt(w.south).Reason != change.NotStopped {
		return
	}
	w.written++
	unit, value := w.draw("unit", len(w.units)), fmt.Appendf(nil, "s%d", w.written)
	rec := change.Record{
		Epoch: w.st.Epoch, Range: w.st.Range, Lane: w.st.Lane, Service: geo.Catalog, Account: w.st.Account, Seq: at.Applied.Seq + 1, Prev: at.Applied.Hash,
		CommitTime: at.Time + 2, Partition: w.units[unit].Append(nil),
		Ops: []change.Op{{Row: []byte{'a'}, Value: value}, {Row: []byte{'b'}, Value: value, Delete: w.draw("delete", 2) == 0}},
	}
	if rec.Ops[1].Delete {
		rec.Ops[1].Value = nil
	}
	b, err := change.AppendRecord(nil, &rec)
	require.NoError(w.t, err)
	w.apply(b)
}

// ask sends south's cursor to north.
func (w *taking) ask() {
	why := w.stopAt(w.south)
	a := takingAnswer{cursor: receive.Cursor{Head: w.cursor().Applied}, base: why.Here}
	if a.cursor.Seq < w.below {
		a.cursor.Below = w.below
	}
	w.below = 0
	a.cursor.Stop = why.Reason
	var err error
	a.answer, err = w.ship.Acknowledge(ship.Acknowledgement{Cursors: []ship.StreamCursor{{
		Stream: w.st, Head: a.cursor.Head, Below: a.cursor.Below, Stop: a.cursor.Stop,
	}}})
	require.NoError(w.t, err)
	w.asked = append(w.asked, a)
	w.submit(w.north, takingTrim{w.st, 0}) // What the shipper submitted is committed before.
}

// answered does at south what an answer asks for.
func (w *taking) answered(a takingAnswer) {
	for _, v := range a.answer {
		switch {
		case v.Reason.Settles() && v.Stopped:
			records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, v.Here.Seq, 1)
			require.NoError(w.t, err)
			if len(records) == 1 && change.HashOf(records[0]) == v.Here.Hash {
				w.await(func(done func(error)) {
					w.applier.Rebase(receive.Rebase{Stream: w.st, From: a.cursor.Head, Record: records[0]}, done)
				})
				if change.HashOf(records[0]) == w.cursor().Applied.Hash {
					w.taken = records[0]
				}
			}
		case v.Reason.Settles():
			w.await(func(done func(error)) { w.applier.Settled(w.st, a.base, v.Here.Seq, done) })
		case v.Reason == change.StopLost && !v.Stopped:
			w.below = v.Here.Seq
		case v.Stopped:
			w.await(func(done func(error)) { w.applier.Stop(w.st, change.Stop{Reason: v.Reason, There: v.Here}, done) })
		}
	}
}

// compare keeps which units differ, and repairs them where north's side is kept.
func (w *taking) compare() {
	why := w.stopAt(w.north)
	if !why.Reason.Settles() || w.head() != w.cursor().Applied || w.stopAt(w.south).Reason.Stands() {
		return
	}
	near, far := w.rows(w.north), w.rows(w.south)
	equal := true
	for u := range w.units {
		if maps.Equal(w.of(near, u), w.of(far, u)) {
			continue
		}
		equal = false
		if why.Reason == change.StopTaking {
			w.differ = append(w.differ, takingUnit{why.Here, u})
		} else {
			w.repair(u)
		}
	}
	if equal {
		w.ends = append(w.ends, takingEnd{why.Here, w.stopAt(w.south).Here == why.Here})
	}
}

// repair has the rows of a unit sent again, as `settlingRows` does with what it does not take.
func (w *taking) repair(unit int) {
	cmd := &primary.Repair{Account: w.st.Account, Service: geo.Catalog, Epoch: w.st.Epoch}
	for r := range takingRowsOfUnit {
		cmd.Keys = append(cmd.Keys, w.key(unit, r))
	}
	w.submit(w.north, cmd)
}

// end ends the settlement that a comparison found equal.
func (w *taking) end(e takingEnd) {
	base := e.base
	why, rows := w.stopAt(w.north), w.rows(w.north)
	cmd := &ranges.EndSettle{Stream: w.st, Base: base}
	w.submit(w.north, cmd)
	if !cmd.Ended || why.Reason != change.StopTaking || !e.same {
		return
	}
	for u := range w.units {
		if !w.since[base][u] {
			require.Equal(w.t, w.of(w.had[why.There], u), w.of(rows, u), "unit %d, which no client wrote, is not south's", u)
		}
	}
}

// readUnit reads a unit at south, as Location.take does.
func (w *taking) readUnit(d takingUnit) {
	why := w.stopAt(w.south)
	if settlesFrom(verify.LaneHead{Head: w.cursor().Applied, Stopped: why.Reason.String(), Base: why.Here}, d.base) != nil {
		return
	}
	unit := primary.TakeUnit{Key: w.units[d.unit].Append(nil)}
	rows := w.of(w.rows(w.south), d.unit)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		unit.Rows = append(unit.Rows, primary.TakeRow{Key: []byte(key), Value: []byte(rows[key])})
	}
	w.read = append(w.read, primary.Take{Stream: w.st, Base: d.base, At: w.cursor().Applied, Units: []primary.TakeUnit{unit}})
}

// take has north take what was read.
func (w *taking) take(cmd primary.Take) {
	unit := slices.IndexFunc(w.units[:], func(p keys.Partition) bool { return bytes.Equal(p.Append(nil), cmd.Units[0].Key) })
	why, before := w.stopAt(w.north), w.of(w.rows(w.north), unit)
	w.submit(w.north, &cmd)
	after := w.of(w.rows(w.north), unit)
	switch outcome := primary.TakeOutcome(cmd.EncodeResult()[0]); outcome {
	case primary.TakeTaken:
		*w.kept++
		require.Equal(w.t, cmd.Base, why.Here)
		require.False(w.t, w.since[cmd.Base][unit], "a client has written it since")
		require.Equal(w.t, w.of(w.had[why.There], unit), after, "the unit is not what south had when it was stopped at %v", why.There)
		for key, v := range before {
			if after[key] != v {
				require.True(w.t, w.isFound(w.north, key, v), "the value %q that was taken over is nowhere at north", v)
			}
		}
	case primary.TakeSame, primary.TakeWritten:
		require.Equal(w.t, before, after)
		w.repair(unit)
	default:
		require.Equal(w.t, before, after)
	}
}

// look is what an operator sees of south, if its stream is stopped there.
func (w *taking) look() (looks int) {
	if w.stopAt(w.south).Reason.Stands() {
		w.looked = append(w.looked, w.cursor())
	}
	return len(w.looked)
}

// resolve is the operator's command.
func (w *taking) resolve(at change.Cursor, take bool) ranges.SettleOutcome {
	c := &ranges.Settle{Stream: w.st, From: at.Applied, Take: take}
	if n := len(at.Pairs); n > 0 {
		c.Above = at.Pairs[n-1].Head.Seq
	}
	w.submit(w.north, c)
	return c.Outcome
}

// isFound reports whether the lost-and-found of a location has a value of a row.
func (w *taking) isFound(s *stamp.Stamp, key, value string) (found bool) {
	require.NoError(w.t, s.Read(w.t.Context(), w.st.Range, func(state ranges.State) error {
		found = false
		snap := state.Snapshot()
		defer func() { require.NoError(w.t, snap.Close()) }()
		return eachFound(snap, w.st, func(row string, f change.Found) {
			found = found || row == key && string(f.Value) == value
		})
	}))
	return found
}

func eachFound(snap kv.Reader, st geo.Stream, f func(row string, found change.Found)) error {
	prefix := keys.AppendContainer(nil, geo.Catalog, keys.LostAndFound, string(st.Account), keys.Generation{})
	return keys.Each(snap, prefix, func(key, value []byte) error {
		_, row, err := keys.ParsePartition(key)
		if err != nil {
			return err
		}
		one, err := change.ParseFound(value)
		f(string(row), one)
		return err
	})
}

// takingTrim deletes at north what south has acknowledged.
type takingTrim struct {
	st geo.Stream
	n  geo.Seq
}

// Evaluate implements ranges.Command.
func (c takingTrim) Evaluate(tx *ranges.Tx) error { return tx.Trim(c.st, c.n) }

func (w *taking) trim() {
	w.note()
	for _, a := range w.asked {
		if len(a.answer) == 0 {
			w.submit(w.north, takingTrim{w.st, a.cursor.Seq})
		}
	}
}

// note adds north's new records to its history.
func (w *taking) note() {
	records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, geo.Seq(len(w.history)+1), 1<<20)
	require.NoError(w.t, err)
	for _, b := range records {
		rows := takingRows{}
		if n := len(w.history); n > 0 {
			rows = maps.Clone(w.history[n-1].rows)
		}
		rec, err := change.ParseRecord(b)
		require.NoError(w.t, err)
		require.Equal(w.t, geo.Seq(len(w.history)+1), rec.Seq)
		for _, op := range rec.Ops {
			key := string(rec.Partition) + string(op.Row)
			if rows[key] = string(op.Value); op.Delete {
				delete(rows, key)
			}
		}
		w.history = append(w.history, takingState{change.HashOf(b), rows})
	}
}

// save keeps what south has, if that is new; lose brings it back to that: its range was recovered with loss.
func (w *taking) save() {
	n, why := len(w.saved), w.stopAt(w.south)
	if w.taken != nil && (n == 0 || !bytes.Equal(w.saved[n-1].record, w.taken) || w.saved[n-1].why != why) {
		w.saved = append(w.saved, takingSaved{w.rows(w.south), w.taken, why})
	}
}

func (w *taking) lose() {
	if n := len(w.saved); n > 0 {
		s := w.saved[w.draw("saved", n)]
		w.submit(w.south, takingFallBack{w, s})
		w.taken = s.record
	}
}

// takingFallBack is the command that stands for a recovery of south with loss.
type takingFallBack struct {
	w  *taking
	to takingSaved
}

// Evaluate implements ranges.Command.
func (c takingFallBack) Evaluate(tx *ranges.Tx) error {
	rec, err := change.ParseRecord(c.to.record)
	if err != nil {
		return err
	}
	tx.Rebase(c.to.record, &rec)
	tx.Stop(c.w.st, c.to.why)
	for u, p := range c.w.units {
		var ops []change.Op
		for r := range takingRowsOfUnit {
			v, ok := c.to.rows[string(c.w.key(u, r))]
			op := change.Op{Row: []byte{byte('a' + r)}, Delete: !ok}
			if ok {
				op.Value = []byte(v)
			}
			ops = append(ops, op)
		}
		if err := tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: ops}); err != nil {
			return err
		}
	}
	return nil
}

// settleOn is one round of all that goes on by itself.
func (w *taking) settleOn() {
	w.deliver(w.cursor().Applied.Seq+1, 1<<20)
	w.ask()
	w.answered(w.asked[len(w.asked)-1])
	differ, ends := len(w.differ), len(w.ends)
	w.compare()
	for _, d := range w.differ[differ:] {
		n := len(w.read)
		if w.readUnit(d); len(w.read) > n {
			w.take(w.read[n])
		}
	}
	if len(w.ends) > ends {
		w.end(w.ends[ends])
	}
}

func (w *taking) step() {
	switch w.draw("step", 18) {
	case 0, 1:
		w.write()
	case 2, 3:
		w.deliver(w.cursor().Applied.Seq+1, 1+w.draw("most", 4))
	case 4:
		w.deliver(geo.Seq(1+w.draw("from", 4)), 1<<20)
	case 5:
		w.ask()
	case 6:
		pick(w, "answer", w.asked, w.answered)
	case 7:
		w.look()
	case 8:
		pick(w, "look", w.looked, func(at change.Cursor) { w.resolve(at, w.draw("keep", 3) > 0) })
	case 9:
		w.compare()
	case 10:
		pick(w, "unit read", w.differ, w.readUnit)
	case 11:
		pick(w, "unit taken", w.read, w.take)
	case 12:
		if n := len(w.ends); n > 0 && w.ends[n-1].base == w.stopAt(w.north).Here {
			w.late()
		}
	case 13:
		w.trim()
	case 14, 15:
		w.settleOn()
	case 16:
		w.lose()
	case 17:
		w.forge()
	}
}

// late ends a settlement by a comparison that was made before, if both ends have gone on as they do: clients wrote, and
// south applied.
func (w *taking) late() { w.end(w.ends[len(w.ends)-1]) }

func pick[T any](w *taking, what string, of []T, f func(T)) {
	if n := len(of); n > 0 {
		f(of[w.draw(what, n)])
	}
}

func (w *taking) check() {
	w.note()
	why, at, south := w.stopAt(w.south), w.cursor().Applied, w.rows(w.south)
	if n := int(at.Seq); n > 0 && n <= len(w.history) && why.Reason == change.NotStopped && w.history[n-1].hash == at.Hash {
		require.Equal(w.t, w.history[n-1].rows, south, "south goes on, with other rows than north had at the same record")
	}
	if why.Reason.MaySettle() {
		if had, known := w.had[at]; known {
			require.Equal(w.t, had, south, "south has other rows at the same cursor")
		}
		w.had[at] = south
	}
}

// R16: whatever is lost, late and repeated while a fork is settled for either side, and whenever the receiver loses what
// it had committed: a unit that is taken becomes what the receiver had of it when it was stopped, whole; none is taken that
// a client has written since the operator's command; what it was is in the lost-and-found; one that goes on without a stop
// has the rows that the source had at that record; and once the ends answer each other the settlement ends.
func TestR16TakeInterleaved(t *testing.T) {
	t.Parallel()
	north, south := stamptest.New(t, "north", geo.Catalog), stamptest.New(t, "south", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	n, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		a := geo.Account(fmt.Sprintf("acct%d", n))
		epoch := geo.Epoch{Number: 1, Location: "north"}
		w := &taking{
			t: t, north: north, south: south, applier: secondary.NewApplier(south, route.First()), kept: &kept,
			had: map[geo.Head]takingRows{}, since: map[geo.Head]map[int]bool{},
			ship: ship.New(ship.Options{Location: "north", Range: north.Leader(id), Logger: slog.New(slog.DiscardHandler)}),
		}
		for i := range w.units {
			w.units[i] = keys.Partition{Service: geo.Catalog, Account: a, Object: fmt.Sprint(i)}
			for w.units[i].Lane() != w.units[0].Lane() {
				w.units[i].Object += "x"
			}
		}
		w.st = geo.Stream{Account: a, Epoch: epoch, Range: id, Lane: w.units[0].Lane()}
		w.submit(north, stamptest.Gate{Account: a, Gate: change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true, Numbered: true}})
		w.submit(south, stamptest.Gate{Account: a, Gate: change.Gate{Epoch: epoch, Role: change.RoleSecondary, Open: true}})
		w.write()
		w.deliver(1, 1)
		w.forge()
		w.write() // It shows the fork.
		for range w.draw("steps", 80) {
			w.step()
			w.check()
			w.save()
		}
		take := w.draw("side", 3) > 0
		for i := range 60 {
			w.settleOn()
			if why := w.stopAt(north); i == 40 && why.Reason == change.StopTaking { // South was brought back to an earlier settlement.
				w.submit(north, &ranges.Settle{Stream: w.st, From: w.cursor().Applied, Settles: true})
			}
			if n := len(w.looked); w.look() > n && w.resolve(w.looked[n], take) > ranges.SettleBegun {
				w.resolve(w.looked[n], false)
			}
			w.check()
			if w.stopAt(north).Reason == change.NotStopped && w.stopAt(south).Reason == change.NotStopped && w.cursor().Applied == w.head() {
				break
			}
		}
		require.Equal(t, [2]change.Stop{}, [2]change.Stop{w.stopAt(north), w.stopAt(south)}, "south is at %v; head %v", w.cursor(), w.head())
		w.deliver(w.cursor().Applied.Seq+1, 1<<20)
		require.Equal(t, w.rows(north), w.rows(south))
		w.check()
	})
	require.Positive(t, kept)
}
