package extent

import (
	"context"
	"slices"
)

// compaction is the file whose chunks Compact is copying, nil for none, and the chunk to be
// looked at next.
type compaction struct {
	file *file
	at   cursor
}

// compactBytes and compactChunks are what one step copies before it syncs, give or take a
// chunk.
const (
	compactBytes  = 4 << 20
	compactChunks = 4096
)

// Compact copies some of what lives in the sealed extent with the greatest share of
// garbage, if that is Options.GarbagePercent at least, and makes the copies durable. When
// the last one is copied the extent is dropped, as after Delete. It returns the bytes
// copied; zero means that there is nothing to do now. One call copies a few MiB and
// waits for one Sync; the caller sees to the pace. A chunk is Durable all the time: its
// new place counts from when it is durable there. A damaged chunk stays where it is, and
// with it its extent, until a Put repairs it. It starts no goroutine, and calls of Scrub
// and Compact wait for each other. Errors are those of Put and Sync.
func (s *Store) Compact(ctx context.Context) (int64, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.ops.Done()
	if s.readOnly {
		return 0, ErrReadOnly
	}
	s.stepping.Lock()
	defer s.stepping.Unlock()
	for {
		if s.compacting.file == nil && !s.pickVictim() {
			return 0, nil
		}
		copied, err := s.copyForward(ctx)
		if copied > 0 || err != nil {
			return copied, err
		}
	}
}

// pickVictim chooses the extent to empty. The caller holds stepping.
func (s *Store) pickVictim() bool {
	var victim *file
	var least float64
	s.eachFile(func(e *file) {
		share := float64(e.liveBytes) / float64(e.size)
		if !e.sealed || !hasSound(e) || 100*share > float64(100-s.opts.GarbagePercent) {
			return
		}
		if victim == nil || share < least {
			victim, least = e, share
		}
	})
	if victim == nil {
		return false
	}
	s.compacting = compaction{victim, cursor{file: victim.number}}
	return true
}

// move is a chunk and its two places.
type move struct{ from, to entry }

// copyForward copies chunks of the victim, syncs, and then lets the copies count. After
// the last one there is no victim any more.
func (s *Store) copyForward(ctx context.Context) (copied int64, err error) {
	victim := s.compacting.file
	var moves []move
	for copied < compactBytes && len(moves) < compactChunks {
		from, ok := s.nextMovable()
		if !ok {
			s.compacting = compaction{}
			break
		}
		to, ok, err := s.copyChunk(from)
		if err != nil {
			s.discardCopies(moves)
			return 0, err
		}
		if ok {
			moves = append(moves, move{from, to})
			copied += int64(to.length)
		}
	}
	if err := s.Sync(ctx); err != nil {
		s.compacting = compaction{} // What was copied is garbage now; it is copied again.
		s.discardCopies(moves)
		return 0, err
	}
	for some := range slices.Chunk(moves, holdMoves/4) { // A move is some steps.
		s.mu.Lock()
		for _, m := range some {
			s.move(m)
			m.to.file.incoming--
		}
		s.mu.Unlock()
	}
	drop := []*file{victim}
	for _, m := range moves {
		if m.to.file != drop[len(drop)-1] {
			drop = append(drop, m.to.file) // Its chunks may have been deleted meanwhile.
		}
	}
	for _, e := range drop {
		if err := s.reap(e); err != nil {
			return 0, s.fail(err)
		}
	}
	return copied, nil
}

// discardCopies gives up copies that will not count.
func (s *Store) discardCopies(moves []move) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range moves {
		m.to.file.incoming--
	}
}

// nextMovable returns the next chunk that can be copied out of the victim. It may be gone by
// the time it is.
func (s *Store) nextMovable() (next entry, ok bool) {
	c := &s.compacting
	s.eachChunk(&c.at, func(e *file) bool { return e == c.file }, func(e *file, c *cell) bool {
		if c.state == sound {
			next, ok = entry{e, *c}, true
		}
		return !ok
	}, func() bool { return !ok && c.at.file == c.file.number })
	return next, ok
}

// copyChunk appends a copy of a chunk.
func (s *Store) copyChunk(en entry) (to entry, ok bool, err error) {
	data := alignedBytes(int(en.length))
	if _, err := s.Read(en.ref(), 0, data); err != nil {
		return entry{}, false, nil //nolint:nilerr // Read noted the damage, or it was deleted.
	}
	ch, err := sumChunk(en.ref(), data, s.opts.SliceBytes)
	if err != nil {
		s.setDamaged(en) // its slices fit, its CRC does not
		return entry{}, false, nil
	}
	a := s.appenderOf(en.length)
	a.turn.Lock()
	defer a.turn.Unlock()
	to, err = s.append(a, ch)
	if err != nil {
		return entry{}, false, err
	}
	s.mu.Lock()
	to.file.incoming++ // Before the next append, which may seal the file.
	s.mu.Unlock()
	return to, true, nil
}

// move lets a copy that is durable count, if the chunk is still where it was copied from.
// The caller holds mu.
func (s *Store) move(m move) {
	e, c := s.find(m.from.id)
	if c == nil || c.state != sound || !m.from.samePlace(&entry{e, *c}) {
		return
	}
	m.to.round, m.to.named = c.round, c.named
	s.unlist(m.from.id)
	s.list(m.to)
}
