package cursor

import (
	"antipode/geo"
	"antipode/stamp/change"
)

// Known is what is known of a source range apart from its streams. A recovery of the range with
// loss raises its incarnation and voids what it promised before:
//
//	closed ──a record or closed record of a later incarnation──> not closed
//	not closed ──a full closed record of that incarnation, late enough──> closed
//
// Not closed, no stream of the range has a sync time.
type Known struct {
	// Incarnation is the greatest one that a record or closed record of the range had. Times and
	// heads of an earlier one are void: the range may have lost what they name.
	Incarnation geo.Incarnation
	// Before is the greatest closed time taken of earlier incarnations. What was shown cannot be taken
	// back: a record of Incarnation at or before it is a fork (R6, R16).
	Before geo.Timestamp
	// Closed is the greatest closed time taken of Incarnation, zero while none is.
	Closed geo.Timestamp
	// Wall is that of the closed record that gave Closed, zero for none: see change.Closed.Wall.
	Wall geo.Timestamp
	// Span is what the range held as of the last full closed record, and Descriptor the version of it,
	// zero before the first (R13).
	Span       geo.Span
	Descriptor geo.DescriptorVersion
}

// Promised is the greatest closed time ever taken of the range.
func (k Known) Promised() geo.Timestamp { return max(k.Before, k.Closed) }

// Joins reports whether a closed record may be taken: it is full, or it names every head that
// changed since the committed closed time (R12). After a recovery with loss, of the source or of the
// range here, the first has to be full, and its time not before from: that of the newest record applied
// here of those numbered before the source's recovery, and what the one here may have lost. It then shows
// of each stream whether one of the two has lost records that the other has, and the closed time never
// goes back (R13).
func (k Known) Joins(c *change.Closed, from func() geo.Timestamp) bool {
	if k.Closed > 0 {
		return c.Full || c.T0 <= k.Closed
	}
	return c.Full && c.T >= max(k.Before, from())
}

// Stale reports whether a closed record changes nothing: a later one was taken, or it is of an
// incarnation that is void.
func (k Known) Stale(c *change.Closed) bool {
	return c.Incarnation < k.Incarnation || c.Incarnation == k.Incarnation && c.T <= k.Closed
}

// Recovered is the closed record that stands for this alone: the range has a later incarnation.
// Nothing of it is closed yet.
func Recovered(src geo.SourceRange, i geo.Incarnation) *change.Closed {
	return &change.Closed{Origin: src.Origin, Range: src.Range, Incarnation: i}
}

// take returns what is known after a closed record. fresh reports that it is the first of its
// incarnation that is taken.
func (k Known) take(c *change.Closed) (next Known, fresh bool) {
	next = k
	if c.Incarnation > k.Incarnation {
		next = Known{Incarnation: c.Incarnation, Before: k.Promised()}
	}
	fresh = next.Closed == 0 && c.T > 0
	next.Closed, next.Wall = c.T, c.Wall
	if c.Full {
		next.Span, next.Descriptor = c.Span, c.Descriptor
	}
	return next, fresh
}

// row is how Known is stored: a closed record without heads, whose T0 is Before.
func (k Known) row(src geo.SourceRange) change.Closed {
	return change.Closed{
		Origin: src.Origin, Range: src.Range, Incarnation: k.Incarnation, T0: k.Before, T: k.Closed,
		Wall: k.Wall, Span: k.Span, Descriptor: k.Descriptor,
	}
}

// KnownOf is the inverse of row.
func KnownOf(row *change.Closed) Known {
	return Known{Incarnation: row.Incarnation, Before: row.T0, Closed: row.T, Wall: row.Wall, Span: row.Span, Descriptor: row.Descriptor}
}

// Streams are the cursors of a source range, as they are changed by a closed record.
type Streams interface {
	// Cursor returns a stream's cursor, the zero value before its first record.
	Cursor(s geo.Stream) change.Cursor
	// Set replaces it.
	Set(s geo.Stream, c change.Cursor)
	// Behind calls f for the streams of src whose cursor has pairs.
	Behind(src geo.SourceRange, f func(geo.Stream, change.Cursor))
}

// Take applies a closed record that is not Stale and that Joins, or is one of Recovered, to all
// cursors, and returns what is known then.
//
// It does nothing to a stream that is behind and not named: the last pair stands for the closed
// time, whatever that is.
func (k Known) Take(c *change.Closed, streams Streams) Known {
	next, fresh := k.take(c)
	if fresh {
		// The pairs name heads that the range may have lost. A stream that is behind has no sync time until it
		// reaches a head of this incarnation.
		streams.Behind(geo.SourceRange{Origin: c.Origin, Range: c.Range}, func(s geo.Stream, at change.Cursor) {
			at.Pairs, at.Sync, at.SyncWall = nil, 0, 0
			streams.Set(s, at)
		})
	}
	for _, h := range c.Heads {
		s := c.Stream(h)
		if at := streams.Cursor(s); at.Applied.Seq < h.Seq {
			if after, changed := below(at, h.Head(), k, fresh, c); changed {
				streams.Set(s, after)
			}
		}
	}
	return next
}

// below returns the cursor of a stream whose head as of c was head, above it. k is what was known before.
func below(at change.Cursor, head geo.Head, k Known, fresh bool, c *change.Closed) (after change.Cursor, changed bool) {
	n := len(at.Pairs)
	switch {
	case n == 0:
		if at.Sync, at.SyncWall = k.Closed, k.Wall; fresh {
			at.Sync, at.SyncWall = 0, 0
		}
		at.Pairs = []change.Pair{{T: c.T, Head: head, Wall: c.Wall}}
		return at, true
	case at.Pairs[n-1].Head.Seq >= head.Seq:
		// Heads by maximum (R12): a closed record may name a head that is later than its time.
		return at, false
	}
	pairs := append(make([]change.Pair, 0, n+1), at.Pairs...) // Copies of the cursor share them.
	pairs[n-1].T, pairs[n-1].Wall = k.Closed, k.Wall
	if n == change.PairsMax {
		// Drop one in between: the sync time moves in larger steps, never too far.
		pairs = pairs[:n-1]
	}
	at.Pairs = append(pairs, change.Pair{T: c.T, Head: head, Wall: c.Wall})
	return at, true
}
