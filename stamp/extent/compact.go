package extent

import (
	"bytes"
	"context"
	"slices"
)

// compaction is the file whose chunks Compact is copying.
type compaction struct {
	file *file
	// rest are its chunks yet to be copied, the last one first.
	rest []ChunkID
}

// compactBytes is what one step copies before it syncs, give or take a chunk.
const compactBytes = 4 << 20

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
		if len(s.compacting.rest) == 0 && !s.pickVictim() {
			return 0, nil
		}
		copied, err := s.copyForward(ctx)
		if copied > 0 || err != nil {
			return copied, err
		}
	}
}

// pickVictim chooses the extent to empty. It visits the whole index under mu, once for
// each extent emptied. The caller holds stepping.
func (s *Store) pickVictim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	movable := map[*file]int{}
	for _, en := range s.index {
		if en.state == sound {
			movable[en.file]++
		}
	}
	var victim *file
	var least float64
	for _, e := range s.files {
		share := float64(e.liveBytes) / float64(e.size)
		if !e.sealed || movable[e] == 0 || 100*share > float64(100-s.opts.GarbagePercent) {
			continue
		}
		if victim == nil || share < least || share == least && e.number < victim.number {
			victim, least = e, share
		}
	}
	s.compacting = compaction{file: victim}
	if victim == nil {
		return false
	}
	for id, en := range s.index {
		if en.file == victim {
			s.compacting.rest = append(s.compacting.rest, id)
		}
	}
	slices.SortFunc(s.compacting.rest, func(a, b ChunkID) int { return bytes.Compare(b[:], a[:]) })
	return true
}

// move is a chunk and its two places.
type move struct {
	id       ChunkID
	from, to entry
}

// copyForward copies chunks of the victim, syncs, and then lets the copies count.
func (s *Store) copyForward(ctx context.Context) (int64, error) {
	c := &s.compacting
	var moves []move
	var copied int64
	for len(c.rest) > 0 && copied < compactBytes {
		id := c.rest[len(c.rest)-1]
		m, ok, err := s.copyChunk(id, c.file)
		if err != nil {
			return 0, err
		}
		c.rest = c.rest[:len(c.rest)-1]
		if ok {
			moves = append(moves, m)
			copied += int64(m.to.length)
		}
	}
	if err := s.Sync(ctx); err != nil {
		c.rest = nil // What was copied is garbage now; it is copied again.
		return 0, err
	}
	s.mu.Lock()
	for _, m := range moves {
		now, ok := s.index[m.id]
		if ok && now.samePlace(m.from) && now.state == sound {
			s.unlist(m.id)
			s.list(m.id, m.to)
			s.index[m.id] = m.to.in(now.round)
		}
	}
	s.mu.Unlock()
	if err := s.reap(c.file); err != nil {
		return 0, s.fail(err)
	}
	return copied, nil
}

// copyChunk appends a copy of a chunk that lives, undamaged, in the victim.
func (s *Store) copyChunk(id ChunkID, victim *file) (move, bool, error) {
	s.mu.Lock()
	en, ok := s.index[id]
	s.mu.Unlock()
	if !ok || en.file != victim || en.state != sound {
		return move{}, false, nil
	}
	data := alignedBytes(int(en.length))
	if _, err := s.Read(en.ref(id), 0, data); err != nil {
		return move{}, false, nil //nolint:nilerr // Read noted the damage, or it was deleted.
	}
	ch, err := sumChunk(en.ref(id), data, s.opts.SliceBytes)
	if err != nil {
		s.setDamaged(id, en) // its slices fit, its CRC does not
		return move{}, false, nil
	}
	a := s.appenderOf(en.length)
	a.turn.Lock()
	defer a.turn.Unlock()
	to, err := s.append(a, ch)
	return move{id, en, to}, err == nil, err
}
