package receive

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// sent is a record as it arrives.
func (w *world) sent(st geo.Stream, n geo.Seq, pulled bool) []byte {
	if b := w.outbox[st][n]; w.spoil == nil {
		return b
	} else {
		return w.spoil(st, n, slices.Clone(b), pulled)
	}
}

// Records implements Source.
func (w *world) Records(s geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	w.pulled++
	w.pulls[s]++
	if bytesMax == 1 {
		w.probes++
	}
	w.asked += bytesMax
	w.askedMost = max(w.askedMost, w.asked)
	if w.hung[s.Range] {
		return
	}
	w.later(func() {
		var out [][]byte
		size := 0
		for n := from; w.outbox[s][n] != nil && n != w.held[s] && (len(out) == 0 || size+len(w.outbox[s][n]) <= bytesMax); n++ {
			out = append(out, w.sent(s, n, true))
			size += len(out[len(out)-1])
		}
		w.answer(func(err error) {
			w.asked -= bytesMax
			done(out, err)
		})
	})
}

// Closed implements Source.
// Rest implements Source.
func (w *world) Rest(id geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error)) {
	if w.rest != nil {
		w.rest(id, done)
	}
}

// Closed implements Source.
func (w *world) Closed(id geo.RangeID, done func(*change.Closed, error)) {
	w.later(func() {
		all := map[geo.Stream]bool{}
		for st := range w.heads {
			all[st] = true
		}
		if w.wholes[id]++; w.laterClosed[id] {
			w.answer(func(error) { done(nil, fmt.Errorf("the answer: %w", change.ErrVersion)) })
			return
		}
		c := &change.Closed{Origin: testOrigin, Range: id, Full: true, T: w.closedT[id], Heads: w.closedHeads(id, all)}
		w.answer(func(err error) { done(c, err) })
	})
}

// Acknowledge implements Source: acknowledged records leave the outbox.
func (w *world) Acknowledge(_ geo.RangeID, cursors map[geo.Stream]Cursor, full bool, answer func([]Mismatch, error)) {
	done := func(err error) { answer(nil, err) }
	w.acked += len(cursors)
	w.later(func() {
		if w.ackErr != nil {
			w.later(func() { done(w.ackErr) })
			return
		}
		if full {
			w.fulls++
		}
		for st, h := range cursors {
			require.LessOrEqual(w.t, h.Seq, w.cursors[st].Seq, "acknowledged what is not committed")
			for n := range w.outbox[st] {
				if n <= h.Seq && !w.keep {
					delete(w.outbox[st], n)
				}
			}
		}
		if w.compare != nil {
			mismatches := w.compare(cursors, full)
			done = func(err error) { answer(mismatches, err) }
		}
		w.answer(done)
	})
}

// settlements are the calls that settle forks.
type settlements struct {
	rebased []Rebase
	settled []ended
}

type ended struct {
	stream geo.Stream
	base   geo.Head
	at     geo.Seq
}

// payloads is the payload of records: what is here, and what is under way.
type payloads struct {
	here map[extent.Ref]bool
	// chunks are under way, with so many bytes; the most of both, and how many came twice.
	chunks, chunksMost, chunkBytes, chunkBytesMost, twice int
}

// Chunk implements Source.
func (w *world) Chunk(ref extent.Ref, done func([]byte, error)) {
	if w.here == nil {
		w.t.Fatal("no record here names a chunk")
	}
	w.chunks++
	w.chunkBytes += int(ref.Length)
	w.chunksMost, w.chunkBytesMost = max(w.chunksMost, w.chunks), max(w.chunkBytesMost, w.chunkBytes)
	w.later(func() {
		w.answer(func(err error) {
			if err != nil {
				w.chunks--
				w.chunkBytes -= int(ref.Length)
			}
			done(nil, err)
		})
	})
}

// Rebase implements Applier.
func (w *world) Rebase(r Rebase, done func(error)) {
	w.rebased = append(w.rebased, r)
	w.later(func() { done(nil) })
}

// Settled implements Applier.
func (w *world) Settled(st geo.Stream, base geo.Head, at geo.Seq, done func(error)) {
	w.settled = append(w.settled, ended{st, base, at})
	w.later(func() { done(nil) })
}

// PutPayload implements Applier.
func (w *world) PutPayload(ref extent.Ref, _ []byte, done func(error)) {
	w.later(func() {
		w.chunks--
		w.chunkBytes -= int(ref.Length)
		if w.here[ref] {
			w.twice++
		}
		w.here[ref] = true
		done(nil)
	})
}

// HasPayload implements Applier.
func (w *world) HasPayload(ref extent.Ref) bool { return w.here == nil || w.here[ref] }

// answer gives an answer later, or loses it.
func (w *world) answer(done func(error)) {
	var err error
	if !w.calm && w.rng.IntN(8) == 0 {
		err = errLost
	}
	w.later(func() { done(err) })
}
