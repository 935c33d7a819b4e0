package state

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// The rows that a DeleteRange deleted take room on the disk until their tables are compacted, which Pebble does when
// enough tables have been written since: on a node at rest, or one whose disk is nearly full, that may never happen.
// So the spans are remembered, and compacted by Reclaim. They are known to the process alone: after a restart
// they wait for Pebble.

// wipedMax bounds the spans that wait. Past it the last one grows.
const wipedMax = 1024

// wiped are the spans that wait for Reclaim.
type wiped struct {
	mu    sync.Mutex
	spans []Span
}

// Wiped remembers that a committed DeleteRange has deleted the rows of a span. It does no I/O.
func (s *Store) Wiped(span Span) {
	w := &s.wiped
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.spans) - 1
	switch {
	case last < 0 || len(w.spans) < wipedMax && !touches(w.spans[last], span):
		w.spans = append(w.spans, span)
	default:
		w.spans[last] = hull(w.spans[last], span)
	}
}

func touches(a, b Span) bool {
	return bytes.Compare(a.Lower, b.Upper) <= 0 && bytes.Compare(b.Lower, a.Upper) <= 0
}

func hull(a, b Span) Span {
	if bytes.Compare(b.Lower, a.Lower) < 0 {
		a.Lower = b.Lower
	}
	if bytes.Compare(b.Upper, a.Upper) > 0 {
		a.Upper = b.Upper
	}
	return a
}

// Reclaim gives the room of one such span back to the disk, and reports whether there was one. It flushes, reads and
// writes the tables that overlap the span, and waits for that.
func (s *Store) Reclaim(ctx context.Context) (worked bool, err error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	w := &s.wiped
	w.mu.Lock()
	if len(w.spans) == 0 {
		w.mu.Unlock()
		return false, nil
	}
	span := w.spans[0]
	w.spans = w.spans[1:]
	w.mu.Unlock()
	if err := s.db.Compact(ctx, span.Lower, span.Upper, false); err != nil {
		return false, fmt.Errorf("compact the state store: %w", err)
	}
	return true, nil
}
