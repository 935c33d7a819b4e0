package cursor

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// ErrGap reports a record that does not follow the cursor of its stream.
var ErrGap = errors.New("cursor: record does not follow the cursor")

// Writer is the batch that takes the rows of Received.
type Writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
}

// Received is how far one range has applied the streams of the other location. A stream is
// in one of two states:
//
//	at its head ──closed head above the cursor──> behind, with its pairs (closed time, head)
//	behind ──cursor reaches the head of the last pair──> at its head
//
// At its head, the stream's sync time is the closed time of its source range. Behind, it is
// the cursor's Sync: the last pair that was reached (R13). The last pair always stands for the closed
// time of the source range, since a later head would be another pair. So a closed record changes
// the cursors of the streams that it names, and no other; the time in the last pair's row is that
// at which the pair was made.
//
// Streams of an account's former epochs have no cursor: see DropFormer.
type Received struct {
	id geo.RangeID
	// cursors are grouped by account: Get Service Stats asks for one account.
	cursors map[geo.Account]map[geo.Stream]*change.Cursor
	known   map[geo.SourceRange]Known
	// behind are the streams whose cursor has pairs.
	behind map[geo.Stream]struct{}
	// moved are the streams whose cursor Finish has to write.
	moved map[geo.Stream]struct{}
}

// Open loads what a range has received.
func Open(id geo.RangeID, from kv.Reader) (*Received, error) {
	r := &Received{
		id: id, cursors: map[geo.Account]map[geo.Stream]*change.Cursor{}, known: map[geo.SourceRange]Known{},
		behind: map[geo.Stream]struct{}{}, moved: map[geo.Stream]struct{}{},
	}
	return r, errors.Join(
		keys.EachStream(from, keys.Cursors(id), func(s geo.Stream, v []byte) (err error) {
			c := r.cursor(s)
			*c, err = change.ParseCursor(v)
			if len(c.Pairs) > 0 {
				r.behind[s] = struct{}{}
			}
			return err
		}),
		keys.Each(from, keys.ReceivedAll(id), func(_, v []byte) error {
			c, err := change.ParseClosed(v)
			if err == nil {
				r.known[geo.SourceRange{Origin: c.Origin, Range: c.Range}] = KnownOf(&c)
			}
			return err
		}),
	)
}

// cursor returns the cursor of a stream, and makes it at the first call.
func (r *Received) cursor(s geo.Stream) *change.Cursor {
	of := r.cursors[s.Account]
	if of == nil {
		of = map[geo.Stream]*change.Cursor{}
		r.cursors[s.Account] = of
	}
	c := of[s]
	if c == nil {
		c = &change.Cursor{}
		of[s] = c
	}
	return c
}

// ApplyRecord moves the cursor of a stream over the record that follows it.
func (r *Received) ApplyRecord(rec *change.Record, encoded []byte) error {
	s := rec.Stream()
	if at := r.Applied(s); !at.Precedes(rec.Seq, rec.Prev) && !plantedbugs.Planted(plantedbugs.ApplyOutOfOrder) {
		return fmt.Errorf("%w: %s: want #%d, got #%d", ErrGap, s, at.Seq+1, rec.Seq)
	}
	r.Set(s, Advance(r.known[s.Source()], *r.cursor(s), rec, change.HashOf(encoded)))
	return nil
}

// ApplyBase sets the cursor of a stream to a record of it that does not follow, as a fork is settled.
func (r *Received) ApplyBase(rec *change.Record, encoded []byte) {
	s := rec.Stream()
	r.Set(s, Advance(r.known[s.Source()], *r.cursor(s), rec, change.HashOf(encoded)))
}

// ApplyClosed takes a closed record. The caller has checked with Joins that the heads in
// it, and those known, are all heads as of its time. A closed record that is Stale changes nothing.
func (r *Received) ApplyClosed(w Writer, c *change.Closed) error {
	src := geo.SourceRange{Origin: c.Origin, Range: c.Range}
	k := r.known[src]
	if k.Stale(c) {
		return nil
	}
	k = k.Take(c, r)
	r.known[src] = k
	row := k.row(src)
	return w.Set(keys.Received(r.id, c.Origin, c.Range), change.AppendClosed(nil, &row))
}

// Recovered voids the closed times, after the range here was recovered with loss (R4): it may have lost
// records that it had acknowledged, and a closed record that is not full leaves those out. Until a full
// one is taken no stream has a sync time.
func (r *Received) Recovered(w Writer) error {
	for src, k := range r.known {
		k.Closed, k.Wall = 0, 0
		r.known[src] = k
		row := k.row(src)
		if err := w.Set(keys.Received(r.id, src.Origin, src.Range), change.AppendClosed(nil, &row)); err != nil {
			return err
		}
	}
	return nil
}

// Cursor implements Streams.
func (r *Received) Cursor(s geo.Stream) change.Cursor {
	if c := r.cursors[s.Account][s]; c != nil {
		return *c
	}
	return change.Cursor{}
}

// Set implements Streams. A closed record's caller commits the row with Finish.
func (r *Received) Set(s geo.Stream, c change.Cursor) {
	*r.cursor(s) = c
	if len(c.Pairs) > 0 {
		r.behind[s] = struct{}{}
	} else {
		delete(r.behind, s)
	}
	r.moved[s] = struct{}{}
}

// Behind implements Streams.
func (r *Received) Behind(src geo.SourceRange, f func(geo.Stream, change.Cursor)) {
	for s := range r.behind {
		if s.Source() == src {
			f(s, r.Cursor(s))
		}
	}
}

// DropFormer drops the cursors of an account's former epochs. A later epoch of the account is served, and what became of the streams of an earlier one decides nothing about it (R13).
func (r *Received) DropFormer(w Writer, a geo.Account, former func(geo.Stream) bool) error {
	for s := range r.cursors[a] {
		if !former(s) {
			continue
		}
		delete(r.cursors[a], s)
		delete(r.behind, s)
		delete(r.moved, s)
		if err := w.Delete(keys.Cursor(r.id, s)); err != nil {
			return err
		}
	}
	return nil
}

// Each calls f for every cursor of a source range.
func (r *Received) Each(src geo.SourceRange, f func(geo.Stream, change.Cursor)) {
	for _, of := range r.cursors {
		for s, c := range of {
			if s.Source() == src {
				f(s, *c)
			}
		}
	}
}

// Finish writes the cursors that moved since the last call, once for all groups of a batch.
func (r *Received) Finish(w Writer) error {
	for s := range r.moved {
		if err := w.Set(keys.Cursor(r.id, s), change.AppendCursor(nil, r.cursor(s))); err != nil {
			return err
		}
	}
	clear(r.moved)
	return nil
}

// Applied returns the last record applied of a stream, zero before the first.
func (r *Received) Applied(s geo.Stream) geo.Head { return r.Cursor(s).Applied }

// Known returns what is known of a source range.
func (r *Received) Known(src geo.SourceRange) Known { return r.known[src] }

// Progress copies how far the streams of a source range are: those of an account, or of
// EveryAccount.
func (r *Received) Progress(src geo.SourceRange, a geo.Account) Progress {
	k := r.known[src]
	p := Progress{Source: src, Closed: k.Closed, Wall: k.Wall, Span: k.Span, Descriptor: k.Descriptor}
	add := func(of map[geo.Stream]*change.Cursor) {
		for s, c := range of {
			if s.Source() == src {
				p.Streams = append(p.Streams, ProgressOf(s, c))
			}
		}
	}
	if a != EveryAccount {
		add(r.cursors[a])
		return p
	}
	for _, of := range r.cursors {
		add(of)
	}
	return p
}
