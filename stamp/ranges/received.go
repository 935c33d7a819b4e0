package ranges

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// What a transaction sees and stages of the streams that the range receives.

// Cursor is how far a received stream is applied, groups in flight included.
func (tx *Tx) Cursor(s geo.Stream) change.Cursor {
	if c, ok := tx.r.cursors[s]; ok {
		return c
	}
	return tx.r.Machine.Cursor(s)
}

// Cursors returns the cursors of a source range, groups in flight included. It reads them all.
func (tx *Tx) Cursors(src geo.SourceRange) map[geo.Stream]change.Cursor {
	return tx.cursors(src, false)
}

func (tx *Tx) cursors(src geo.SourceRange, behind bool) map[geo.Stream]change.Cursor {
	out := tx.r.Machine.Cursors(src, behind)
	for s, c := range tx.r.cursors {
		if s.Source() == src {
			out[s] = c
		}
	}
	return out
}

// Known is what is known of a source range, groups in flight included.
func (tx *Tx) Known(src geo.SourceRange) cursor.Known {
	if k, ok := tx.r.known[src]; ok {
		return k
	}
	return tx.r.Machine.Known(src)
}

// Received stages a record of the other location, which must follow the cursor. Without whole
// it stages only the move of the cursor (R14).
func (tx *Tx) Received(encoded []byte, rec *change.Record, whole bool) error {
	s := rec.Stream()
	at := tx.Cursor(s)
	if !at.Applied.Precedes(rec.Seq, rec.Prev) && !plantedbugs.Planted(plantedbugs.ApplyOutOfOrder) {
		return fmt.Errorf("ranges: record %s #%d does not follow cursor #%d", s, rec.Seq, at.Applied.Seq)
	}
	if whole {
		tx.overlayOps(rec)
	}
	tx.b.Received(encoded, rec, whole)
	tx.r.last = max(tx.r.last, rec.CommitTime) // Commit times behind it in the log must be above it (R6).
	save(tx, tx.r.cursors, s)
	tx.r.cursors[s] = nextCursor(tx, at, rec, encoded)
	return nil
}

func nextCursor(tx *Tx, at change.Cursor, rec *change.Record, encoded []byte) change.Cursor {
	return cursor.Advance(tx.Known(rec.Stream().Source()), at, rec, change.HashOf(encoded))
}

// DropFormer takes the heads of former epochs out of a closed record: their records are refused (R7), so
// the streams would be behind, and be pulled, for ever.
func (tx *Tx) DropFormer(c *change.Closed) {
	c.Heads = slices.DeleteFunc(c.Heads, func(h change.StreamHead) bool { return former(tx.Gate(h.Account), c.Stream(h)) })
}

// TakeClosed stages a closed record of the other location, which is not stale and joins, after DropFormer.
func (tx *Tx) TakeClosed(c *change.Closed) {
	src := geo.SourceRange{Origin: c.Origin, Range: c.Range}
	tx.b.ReceivedClosed(c)
	tx.r.last = max(tx.r.last, c.T)
	next := tx.Known(src).Take(c, streams{tx})
	save(tx, tx.r.known, src)
	tx.r.known[src] = next
}

// streams are the cursors as a transaction sees them.
type streams struct{ tx *Tx }

// Cursor implements cursor.Streams.
func (s streams) Cursor(st geo.Stream) change.Cursor { return s.tx.Cursor(st) }

// Set implements cursor.Streams.
func (s streams) Set(st geo.Stream, c change.Cursor) {
	save(s.tx, s.tx.r.cursors, st)
	s.tx.r.cursors[st] = c
}

// Behind implements cursor.Streams.
func (s streams) Behind(src geo.SourceRange, f func(geo.Stream, change.Cursor)) {
	for st, c := range s.tx.cursors(src, true) {
		if len(c.Pairs) > 0 {
			f(st, c)
		}
	}
}
