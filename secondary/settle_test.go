package secondary

import (
	"bytes"
	"log/slog"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// settling is one stream from north to south, whose two ends differ. What is asked and answered between them may
// be lost, late, repeated and in any order.
type settling struct {
	t            *rapid.T
	north, south *stamp.Stamp
	ship         *ship.Shipper
	applier      *Applier
	st           geo.Stream
	p            keys.Partition
	written      int
	// asked are the cursors that south sent, with the answers; looked are what an operator saw of it, and bases the
	// settlements that were compared.
	asked  []settlingAnswer
	looked []change.Cursor
	bases  []geo.Head
	// lost are the values that south alone had when its stream was stopped, by row.
	lost map[string]string
	// history is what north had at each of its records. saved is what south had at times, and taken the record
	// at its cursor now.
	history []northState
	saved   []southState
	taken   []byte
	// below is up to where the stream is trimmed, if north answered that.
	below geo.Seq
}

type northState struct {
	hash geo.Hash
	rows map[string]string
}

// southState is what south may fall back to in a recovery with loss.
type southState struct {
	rows   map[string]string
	record []byte
	why    change.Stop
}

// note adds north's new records to its history.
func (w *settling) note() {
	records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, geo.Seq(len(w.history)+1), 1<<20)
	require.NoError(w.t, err)
	for _, b := range records {
		rows := map[string]string{}
		if n := len(w.history); n > 0 {
			rows = maps.Clone(w.history[n-1].rows)
		}
		rec, err := change.ParseRecord(b)
		require.NoError(w.t, err)
		require.Equal(w.t, geo.Seq(len(w.history)+1), rec.Seq)
		for _, op := range rec.Ops {
			if rows[string(op.Row)] = string(op.Value); op.Delete {
				delete(rows, string(op.Row))
			}
		}
		w.history = append(w.history, northState{change.HashOf(b), rows})
	}
}

// save keeps what south has, if that is new; lose brings it back to that: its range was recovered with loss.
func (w *settling) save() {
	n, why := len(w.saved), w.stopAt(w.south)
	if w.taken != nil && (n == 0 || !bytes.Equal(w.saved[n-1].record, w.taken) || w.saved[n-1].why != why) {
		w.saved = append(w.saved, southState{w.rows(w.south), w.taken, why})
	}
}

func (w *settling) lose() {
	if n := len(w.saved); n > 0 {
		s := w.saved[w.draw("saved", n)]
		w.submit(w.south, fallBack{w.st, w.p, s})
		w.taken = s.record
	}
}

// fallBack is the command that stands for a recovery of south with loss.
type fallBack struct {
	st geo.Stream
	p  keys.Partition
	to southState
}

// Evaluate implements ranges.Command.
func (c fallBack) Evaluate(tx *ranges.Tx) error {
	rec, err := change.ParseRecord(c.to.record)
	if err != nil {
		return err
	}
	var ops []change.Op
	for i := range settlingRows {
		row := string([]byte{byte('a' + i)})
		v, ok := c.to.rows[row]
		ops = append(ops, change.Op{Row: []byte(row), Value: []byte(v), Delete: !ok})
	}
	tx.Rebase(c.to.record, &rec)
	tx.Stop(c.st, c.to.why)
	return tx.Change(c.p, change.Record{CommitTime: tx.Timestamp(0), Partition: c.p.Append(nil), Ops: ops})
}

type settlingAnswer struct {
	cursor receive.Cursor
	base   geo.Head
	answer []ship.Mismatch
}

const settlingRows = 3

func (w *settling) draw(what string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, what) }

func (w *settling) row() []byte { return []byte{byte('a' + w.draw("row", settlingRows))} }

func (w *settling) submit(s *stamp.Stamp, c ranges.Command) {
	submit(w.t, func(done func(error)) { s.Leader(w.st.Range).Submit(c, done) })
}

// write changes a row at north.
func (w *settling) write() {
	w.written++
	op := change.Op{Row: w.row(), Value: []byte{byte(w.written)}}
	if w.draw("delete", 4) == 0 {
		op = change.Op{Row: op.Row, Delete: true}
	}
	w.submit(w.north, stamptest.Change{Partition: w.p, Record: change.Record{Ops: []change.Op{op}}})
}

func (w *settling) cursor() change.Cursor { return w.south.Leader(w.st.Range).Machine.Cursor(w.st) }

func (w *settling) stopAt(s *stamp.Stamp) change.Stop {
	why, _ := s.Leader(w.st.Range).Machine.Stopped(w.st)
	return why
}

// apply applies records at south.
func (w *settling) apply(records ...[]byte) {
	b := &receive.Batch{Source: w.st.Source()}
	for _, r := range records {
		rec, err := change.ParseRecord(r)
		require.NoError(w.t, err)
		b.Records = append(b.Records, &receive.Record{Bytes: r, Record: rec})
	}
	submit(w.t, func(done func(error)) { w.applier.Apply(b, done) })
	for _, r := range b.Records {
		if r.Outcome == receive.Applied {
			w.taken = r.Bytes
		}
	}
}

// deliver applies what follows the cursor, or an earlier record.
func (w *settling) deliver(from geo.Seq) {
	records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, from, 1<<20)
	require.NoError(w.t, err)
	if len(records) > 0 {
		w.apply(records...)
	}
}

// forge applies a record at south that north does not have.
func (w *settling) forge() {
	at := w.cursor()
	if w.stopAt(w.south).Reason != change.NotStopped {
		return
	}
	w.written++
	rec := change.Record{
		Epoch: w.st.Epoch, Range: w.st.Range, Lane: w.st.Lane, Service: geo.Catalog, Account: w.st.Account, Seq: at.Applied.Seq + 1, Prev: at.Applied.Hash,
		CommitTime: at.Time + 2, Partition: w.p.Append(nil), Ops: []change.Op{{Row: w.row(), Value: []byte{byte(w.written), 'f'}}},
	}
	b, err := change.AppendRecord(nil, &rec)
	require.NoError(w.t, err)
	w.apply(b)
}

// ask sends south's cursor to north.
func (w *settling) ask() {
	why := w.stopAt(w.south)
	a := settlingAnswer{cursor: receive.Cursor{Head: w.cursor().Applied}, base: why.Here}
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
	w.submit(w.north, trimTo{w.st, 0}) // What the shipper submitted is committed before.
}

// answered does at south what an answer asks for.
func (w *settling) answered(a settlingAnswer) {
	for _, v := range a.answer {
		switch {
		case v.Reason.Settles() && v.Stopped:
			records, err := w.north.Leader(w.st.Range).Machine.Outbox(w.st, v.Here.Seq, 1)
			require.NoError(w.t, err)
			if len(records) == 1 && change.HashOf(records[0]) == v.Here.Hash {
				sent := &rebase{receive.Rebase{Stream: w.st, From: a.cursor.Head, Record: records[0]}}
				arrived, err := parseRebase(sent.Encode())
				require.NoError(w.t, err)
				w.submit(w.south, arrived)
				if change.HashOf(records[0]) == w.cursor().Applied.Hash {
					w.taken = records[0]
				}
			}
		case v.Reason.Settles():
			submit(w.t, func(done func(error)) { w.applier.Settled(w.st, a.base, v.Here.Seq, done) })
		case v.Reason == change.StopLost && !v.Stopped:
			w.below = v.Here.Seq
		case v.Stopped:
			submit(w.t, func(done func(error)) {
				w.applier.Stop(w.st, change.Stop{Reason: v.Reason, There: v.Here}, done)
			})
		}
	}
}

// rows returns the rows of one end.
func (w *settling) rows(s *stamp.Stamp) map[string]string {
	out := map[string]string{}
	require.NoError(w.t, s.Read(w.t.Context(), w.st.Range, func(state ranges.State) error {
		clear(out)
		for i := range settlingRows {
			row := []byte{byte('a' + i)}
			v, ok, err := state.Get(append(w.p.Append(nil), row...))
			if err != nil {
				return err
			}
			if ok {
				out[string(row)] = string(v)
			}
		}
		return nil
	}))
	return out
}

// compare repairs the rows that differ while north settles, and ends the settlement if none does.
func (w *settling) compare() {
	why := w.stopAt(w.north)
	if !why.Reason.Settles() {
		return
	}
	w.bases = append(w.bases, why.Here)
	if w.north.Leader(w.st.Range).Machine.Head(w.st) != w.cursor().Applied || w.stopAt(w.south).Reason.Stands() {
		return
	}
	near, far := w.rows(w.north), w.rows(w.south)
	var ops []change.Op
	for i := range settlingRows {
		row := string([]byte{byte('a' + i)})
		v, ok := near[row]
		if u, has := far[row]; u == v && has == ok {
			continue
		}
		ops = append(ops, change.Op{Row: []byte(row), Value: []byte(v), Delete: !ok})
	}
	if len(ops) > 0 {
		w.submit(w.north, stamptest.Change{Partition: w.p, Record: change.Record{Ops: ops}})
		return
	}
	w.submit(w.north, &ranges.EndSettle{Stream: w.st, Base: why.Here})
}

// look is what an operator sees of south, if its stream is stopped there; resolve is the operator's command.
func (w *settling) look() (looks int) {
	if w.stopAt(w.south).Reason.Stands() {
		w.looked = append(w.looked, w.cursor())
	}
	return len(w.looked)
}

func (w *settling) resolve(at change.Cursor) {
	c := &ranges.Settle{Stream: w.st, From: at.Applied}
	if n := len(at.Pairs); n > 0 {
		c.Above = at.Pairs[n-1].Head.Seq
	}
	w.submit(w.north, c)
	w.bases = append(w.bases, w.stopAt(w.north).Here)
}

// trim deletes at north what south has acknowledged.
func (w *settling) trim() {
	w.note()
	for _, a := range w.asked {
		if len(a.answer) == 0 {
			w.submit(w.north, trimTo{w.st, a.cursor.Seq})
		}
	}
}

type trimTo struct {
	st geo.Stream
	n  geo.Seq
}

// Evaluate implements ranges.Command.
func (c trimTo) Evaluate(tx *ranges.Tx) error { return tx.Trim(c.st, c.n) }

// found returns the values that the lost-and-found of south has of a row.
func (w *settling) found(row string) (out [][]byte) {
	key := append(w.p.Append(nil), row...)
	seen := map[geo.Seq]bool{}
	require.NoError(w.t, w.south.Read(w.t.Context(), w.st.Range, func(state ranges.State) error {
		out = nil
		clear(seen)
		for _, base := range append(w.bases, w.stopAt(w.north).Here, w.stopAt(w.south).Here) {
			v, ok, err := state.Get(append(keys.Found(geo.Catalog, w.st, base.Seq).Append(nil), key...))
			if err != nil {
				return err
			}
			if ok && !seen[base.Seq] {
				f, err := change.ParseFound(v)
				if err != nil {
					return err
				}
				out = append(out, f.Value)
			}
			seen[base.Seq] = true
		}
		return nil
	}))
	return out
}

// R16: whatever is lost, late and repeated between the ends of a fork that is settled, and whenever the receiver loses
// what it had committed, one that goes on without a stop, at a record of the source, has the rows that the source had
// there; each value that it alone had is in its lost-and-found once it is overwritten; and once the ends answer
// each other the settlement ends.
func TestR16SettleInterleaved(t *testing.T) {
	t.Parallel()
	north, south := stamptest.New(t, "north", geo.Catalog), stamptest.New(t, "south", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		a := geo.Account("acct" + string(rune('a'+n/26%26)) + string(rune('a'+n%26)) + string(rune('a'+n/676)))
		epoch := geo.Epoch{Number: 1, Location: "north"}
		w := &settling{
			t: t, north: north, south: south, applier: NewApplier(south, route.First()), p: keys.Partition{Service: geo.Catalog, Account: a, Object: "o"}, lost: map[string]string{},
			ship: ship.New(ship.Options{Location: "north", Range: north.Leader(id), Logger: slog.New(slog.DiscardHandler)}),
		}
		w.st = geo.Stream{Account: a, Epoch: epoch, Range: id, Lane: w.p.Lane()}
		w.submit(north, stamptest.Gate{Account: a, Gate: change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true, Numbered: true}})
		w.submit(south, stamptest.Gate{Account: a, Gate: change.Gate{Epoch: epoch, Role: change.RoleSecondary, Open: true}})
		w.write()
		w.deliver(1)
		w.forge()
		for k, v := range w.rows(south) {
			if w.rows(north)[k] != v {
				w.lost[k] = v
			}
		}
		w.write() // It shows the fork.
		for range w.draw("steps", 80) {
			w.step()
			w.check()
			w.save()
		}
		for range 40 {
			w.settleOn()
			if n := len(w.looked); w.look() > n {
				w.resolve(w.looked[n])
			}
			w.check()
			if w.stopAt(north).Reason == change.NotStopped && w.stopAt(south).Reason == change.NotStopped && w.cursor().Applied == north.Leader(id).Machine.Head(w.st) {
				break
			}
		}
		require.Equal(t, [2]change.Stop{}, [2]change.Stop{w.stopAt(north), w.stopAt(south)}, "south is at %v; head %v", w.cursor(), north.Leader(id).Machine.Head(w.st))
		w.deliver(w.cursor().Applied.Seq + 1)
		require.Equal(t, w.rows(north), w.rows(south))
		w.check()
	})
}

// settleOn is one round of all that goes on by itself.
func (w *settling) settleOn() {
	w.deliver(w.cursor().Applied.Seq + 1)
	w.ask()
	w.answered(w.asked[len(w.asked)-1])
	w.compare()
}

func (w *settling) step() {
	switch w.draw("step", 13) {
	case 0:
		w.write()
	case 1, 2:
		w.deliver(w.cursor().Applied.Seq + 1)
	case 3:
		w.deliver(geo.Seq(1 + w.draw("from", 4)))
	case 4:
		w.ask()
	case 5:
		if n := len(w.asked); n > 0 {
			w.answered(w.asked[w.draw("answer", n)])
		}
	case 6:
		w.look()
	case 9:
		w.trim()
	case 10, 11:
		w.settleOn()
	case 12:
		w.lose()
	case 7:
		if n := len(w.looked); n > 0 {
			w.resolve(w.looked[w.draw("look", n)])
		}
	case 8:
		if n := len(w.bases); n > 0 && w.draw("late", 3) == 0 {
			w.submit(w.south, &ranges.EndSettle{Stream: w.st, Base: geo.Head{Seq: w.bases[w.draw("base", n)].Seq, Hash: 1}}) // Of no settlement.
			return
		}
		w.compare()
	}
}

func (w *settling) check() {
	w.note()
	south, at := w.rows(w.south), w.cursor().Applied
	if n := int(at.Seq); n > 0 && n <= len(w.history) && w.stopAt(w.south).Reason == change.NotStopped && w.history[n-1].hash == at.Hash {
		require.Equal(w.t, w.history[n-1].rows, south, "south goes on, with other rows than north had at the same record")
	}
	for row, v := range w.lost {
		if south[row] != v {
			require.True(w.t, containsValue(w.found(row), v), "the value %q of row %s is nowhere", v, row)
		}
	}
}

func containsValue(list [][]byte, v string) bool {
	for _, b := range list {
		if bytes.Equal(b, []byte(v)) {
			return true
		}
	}
	return false
}
