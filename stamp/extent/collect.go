package extent

// Collection finds the chunks that nothing names, by marking and sweeping the index. Only
// the owner knows the names, so it drives the rounds:
//
//	s.BeginRound()
//	s.Mark(ref)      // for everything that names a chunk
//	s.EndRound()     // only if all of it was marked
//	s.Sweep(limit)   // until it drops none
//
// Sweep drops what was neither marked nor touched in the last two rounds. A touch is a
// Put, also of a chunk that is held, and each question Durable: whoever puts a chunk, or
// is told that it is here, may name it from then on, where no walk over the names sees it
// yet. So who names a chunk has as long as lies between the beginnings of two rounds to
// make the name one that Mark is told of. A round without an end counts for nothing: two
// whole ones must follow it.
//
// The marks are in the index, which holds every chunk anyhow: there is no second set of
// ids.

// BeginRound begins a round of collection.
func (s *Store) BeginRound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.complete = 0
	}
	s.ended = false
	s.round++
}

// Mark says that a chunk is named, and reports whether it is held, whole as far as is
// known.
func (s *Store) Mark(ref Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	en, ok := s.index[ref.ID]
	if ok {
		s.touch(ref.ID, en)
	}
	return ok && en.state == sound && en.ref(ref.ID) == ref
}

// EndRound says that everything that names a chunk was marked since BeginRound.
func (s *Store) EndRound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.complete++
}

// Sweep drops some of the chunks that were unnamed in the last two rounds, at most limit,
// and returns how many, and their payload in bytes; none where one of the rounds had no
// end. It holds up other calls while it visits the index, until it has found that many.
// Errors are those of Delete.
func (s *Store) Sweep(limit int) (chunks int, bytes int64, err error) {
	s.mu.Lock()
	var unnamed []Ref
	if s.ended && s.complete >= 2 {
		for id, en := range s.index {
			if len(unnamed) == limit {
				break
			}
			if s.unnamed(en) {
				unnamed = append(unnamed, en.ref(id))
			}
		}
	}
	s.mu.Unlock()
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
	return chunks, bytes, nil
}

// unnamed reports whether a chunk was neither marked nor touched in the last two rounds.
// The caller holds mu.
func (s *Store) unnamed(en entry) bool { return en.round+2 <= s.round }

// touch notes that somebody puts a chunk or asks for it. The caller holds mu.
func (s *Store) touch(id ChunkID, en entry) {
	if en.round != s.round {
		s.index[id] = en.in(s.round)
	}
}

// in returns the entry as of a round.
func (en entry) in(round uint32) entry {
	en.round = round
	return en
}
