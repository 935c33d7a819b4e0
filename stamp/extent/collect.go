package extent

import (
	"slices"
	"sync"
)

// Collection finds the chunks that nothing names, by marking and sweeping the index. Only
// the owner knows the names, so it drives the rounds:
//
//	s.BeginRound(full)
//	s.Mark(ref)      // for everything that names a chunk
//	s.EndRound()     // only if all of it was marked
//	s.Sweep(limit)   // until it drops none
//
// Sweep drops what was neither marked nor touched in the last two rounds. A touch is a
// Put, also of a chunk that is held, and each question Durable, Name or Lacks: a caller that puts a chunk,
// or learns that it is here, may name it from then on, where no walk over the names sees it
// yet. A round without an end counts for nothing: two whole ones must follow it.
//
// Rounds may follow each other within seconds, while an upload may take hours from its first chunk
// to the change that names them all. So a chunk that nothing has named yet is dropped only if it was
// not touched since before the last two full rounds: its uploader has as long as lies between the
// beginnings of two of those. A chunk has been named once it was marked, or was asked for by Name, since Open: of
// one that was here before that is not known. Open counts as the beginning of a full round, after which nothing has touched
// what was here.
//
// The marks are in the index, which holds every chunk anyhow: there is no second set of
// ids.

// Pin has Sweep drop nothing before release is called: what somebody else than the owner may name stays (R9). It
// holds from its return on, also for a sweep under way. The release may be called more than once.
func (s *Store) Pin() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pins--
		s.released()
	})
}

// Hold has Sweep leave some chunks before release is called: a read of them is under way (R9). The release may be called
// more than once. What is not here any more is not held: its read fails.
func (s *Store) Hold(refs []Ref) (release func()) {
	s.countHolds(refs, 1)
	return sync.OnceFunc(func() {
		s.countHolds(refs, -1)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.released()
	})
}

func (s *Store) countHolds(refs []Ref, by int) {
	for some := range slices.Chunk(refs, holdMoves) {
		s.mu.Lock()
		for _, ref := range some {
			s.mu.steps++
			if s.held[ref.ID] += by; s.held[ref.ID] == 0 {
				delete(s.held, ref.ID)
			}
		}
		s.mu.Unlock()
	}
}

// Lacks reports, for each of the refs, whether Put and Sync would have to write: false for a chunk that is held whole as
// far as is known, under an equal ref, and durable. As with Durable each answer pins its chunk; it does not count as
// naming it, so that a chunk which was put for a change to come keeps the time of an upload. The errors are those with
// which Put fails whatever the chunk is.
func (s *Store) Lacks(refs []Ref) ([]bool, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	if s.readOnly {
		return nil, ErrReadOnly
	}
	lacks := make([]bool, 0, len(refs))
	for some := range slices.Chunk(refs, holdMoves) {
		s.mu.Lock()
		if err := s.failed; err != nil {
			s.mu.Unlock()
			return nil, err
		}
		for _, ref := range some {
			e, c := s.find(ref.ID)
			if c == nil || c.ref() != ref {
				lacks = append(lacks, true)
				continue
			}
			c.round = s.round
			lacks = append(lacks, c.state != sound || c.end() > e.synced)
		}
		s.mu.Unlock()
	}
	return lacks, nil
}

// released counts the end of a pin or a hold for which a sweep left something. The caller holds mu.
func (s *Store) released() {
	if s.deferred {
		s.deferred = false
		s.releases++
	}
}

// BeginRound begins a round of collection. A full one counts for chunks that nothing has named yet.
func (s *Store) BeginRound(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.complete = 0
	}
	s.ended = false
	s.round++
	if full {
		s.aged, s.full = s.full, s.round
	}
}

// Mark records that a chunk is named, and reports whether it is held, whole as far as is
// known.
func (s *Store) Mark(ref Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, c := s.find(ref.ID)
	if c == nil {
		return false
	}
	c.round, c.named = s.round, true
	return c.state == sound && c.ref() == ref
}

// EndRound declares that everything that names a chunk was marked since BeginRound.
func (s *Store) EndRound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.complete++
	s.swept = cursor{}
}

// Sweep drops chunks that were unnamed in the last two rounds, at most limit, and returns
// how many, and their payload in bytes; none where one of the rounds had no end. It goes on
// from where the last one was: none also means that the sweep of this round is done. Other
// calls come in between: what is put, marked or asked for while it goes on stays, as a
// chunk is examined when it is dropped. One that Compact moves meanwhile may be left to the
// next round. Errors are those of Delete.
func (s *Store) Sweep(limit int) (chunks int, bytes int64, err error) {
	unnamed := make([]Ref, 0, min(limit, holdMoves))
	for end := false; !end && chunks < limit; {
		unnamed, end = s.nextUnnamed(unnamed[:0], min(limit-chunks, holdMoves))
		for _, ref := range unnamed {
			dropped, err := s.drop(ref.ID, s.unnamed)
			if err != nil {
				return chunks, bytes, err
			}
			if dropped {
				chunks++
				bytes += int64(ref.Length)
			}
		}
	}
	return chunks, bytes, nil
}

// nextUnnamed appends to refs some of the chunks that Sweep may drop, up to limit, under one
// hold of mu; end reports that no more follow.
func (s *Store) nextUnnamed(refs []Ref, limit int) (_ []Ref, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.complete < 2 || s.pins > 0 {
		s.deferred = s.deferred || s.pins > 0
		return refs, true
	}
	end = s.visit(&s.swept, nil, func(_ *file, c *cell) bool {
		if s.unnamed(c) {
			refs = append(refs, c.ref())
		}
		return len(refs) < limit
	})
	return refs, end
}

// unnamed reports whether nothing names a chunk and neither a pin nor a hold keeps it. It was
// neither marked nor touched in the last two rounds, both of which ended. A chunk that nothing has
// named yet was not touched since before the last two full rounds either. The caller holds mu.
func (s *Store) unnamed(c *cell) bool {
	if !s.ended || s.complete < 2 || c.round+2 > s.round || !c.named && c.round >= s.aged {
		return false
	}
	if s.pins > 0 || s.held[c.id] > 0 {
		s.deferred = true
		return false
	}
	return true
}
