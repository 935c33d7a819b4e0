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
}

// Received is how far one range has applied the streams of the other location. A stream is
// in one of two states:
//
//	at its head ──closed head above the cursor──> behind, with its pairs (closed time, head)
//	behind ──cursor reaches the head of the last pair──> at its head
//
// At its head, the stream's sync time is the closed time of its source range. Behind, it is
// the cursor's Sync: the last pair that was reached (R13).
type Received struct {
	id geo.RangeID
	// cursors are grouped by account: Get Service Stats asks for one account.
	cursors map[geo.Account]map[geo.Stream]*change.Cursor
	// closed is the greatest closed time committed for each source range.
	closed map[geo.SourceRange]geo.Timestamp
	// behind are the streams whose cursor has pairs.
	behind map[geo.Stream]struct{}
	// moved are the streams whose cursor Finish has to write.
	moved map[geo.Stream]struct{}
}

// Open loads what a range has received.
func Open(id geo.RangeID, from kv.Reader) (*Received, error) {
	r := &Received{
		id: id, cursors: map[geo.Account]map[geo.Stream]*change.Cursor{}, closed: map[geo.SourceRange]geo.Timestamp{},
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
				r.closed[geo.SourceRange{Origin: c.Origin, Range: c.Range}] = c.T
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
	c := r.cursor(s)
	c.Applied = geo.Head{Seq: rec.Seq, Hash: change.HashOf(encoded)}
	r.reach(s, c)
	r.moved[s] = struct{}{}
	return nil
}

// reach moves Sync over every pair whose head is applied.
func (r *Received) reach(s geo.Stream, c *change.Cursor) {
	for len(c.Pairs) > 0 && c.Pairs[0].Head <= c.Applied.Seq {
		c.Sync = c.Pairs[0].T
		c.Pairs = c.Pairs[1:]
	}
	if len(c.Pairs) == 0 {
		c.Pairs, c.Sync = nil, 0
		delete(r.behind, s)
	}
}

// ApplyClosed takes a closed record. The caller has checked with Joins that the heads in
// it, and those known, are all heads as of its time. A closed record that is not newer than
// the committed one changes nothing.
func (r *Received) ApplyClosed(w Writer, c *change.Closed) error {
	src := geo.SourceRange{Origin: c.Origin, Range: c.Range}
	was := r.closed[src]
	if c.T <= was {
		return nil
	}
	r.closed[src] = c.T
	named := make(map[geo.Stream]struct{}, len(c.Heads))
	for _, h := range c.Heads {
		s := c.Stream(h)
		named[s] = struct{}{}
		r.closeStream(s, h.Seq, was, c.T)
	}
	for s := range r.behind {
		if _, ok := named[s]; ok || s.Source() != src {
			continue
		}
		// Its head did not change since T0, so the last pair now stands for T.
		pairs := r.cursor(s).Pairs
		pairs[len(pairs)-1].T = c.T
		r.moved[s] = struct{}{}
	}
	row := change.Closed{Origin: c.Origin, Range: c.Range, T: c.T}
	return w.Set(keys.Received(r.id, c.Origin, c.Range), change.AppendClosed(nil, &row))
}

// Joins reports whether a closed record may be taken when its source range is closed up to
// at: it is full, or it names every head that changed since then (R12).
func Joins(c *change.Closed, at geo.Timestamp, known bool) bool {
	return c.Full || known && c.T0 <= at
}

// closeStream records that a stream's head was head at t. was is the closed time before.
func (r *Received) closeStream(s geo.Stream, head geo.Seq, was, t geo.Timestamp) {
	c := r.cursor(s)
	switch n := len(c.Pairs); {
	case head <= c.Applied.Seq:
		return // At its head.
	case n == 0:
		c.Sync = was
		c.Pairs = []change.Pair{{T: t, Head: head}}
		r.behind[s] = struct{}{}
	case c.Pairs[n-1].Head == head:
		c.Pairs[n-1].T = t
	case n == change.PairsMax:
		// Drop one in between: the sync time moves in larger steps, never too far.
		c.Pairs = append(c.Pairs[:n-1], change.Pair{T: t, Head: head})
	default:
		c.Pairs = append(c.Pairs, change.Pair{T: t, Head: head})
	}
	r.moved[s] = struct{}{}
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
func (r *Received) Applied(s geo.Stream) geo.Head {
	if c := r.cursors[s.Account][s]; c != nil {
		return c.Applied
	}
	return geo.Head{}
}

// Closed returns the closed time committed for a source range.
func (r *Received) Closed(src geo.SourceRange) (t geo.Timestamp, known bool) {
	t, known = r.closed[src]
	return t, known
}

// Progress copies how far the streams of a source range are: those of an account, or of
// EveryAccount.
func (r *Received) Progress(src geo.SourceRange, a geo.Account) Progress {
	p := Progress{Source: src, Closed: r.closed[src]}
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
