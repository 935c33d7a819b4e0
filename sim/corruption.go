package sim

import (
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/extent"
)

// corruptMax is how many chunks of a node are damaged at one moment, at most.
const corruptMax = 6

// corruptChunks flips bits of some chunks, on a node that runs or stands still. A reader of such
// a chunk must detect it; if none reads it, the scrub must.
func (s *Sim) corruptChunks(m *member) {
	if m.n == nil || m.killed != nil {
		return
	}
	refs := m.n.Extents().Refs()
	if s.chance(0.7) {
		refs = s.newestChunks()
	}
	s.rng.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	for _, ref := range refs[:min(len(refs), 1+s.rng.IntN(corruptMax))] {
		s.corruptChunk(m, ref)
	}
}

// newestChunks returns the chunks of the newest writes. Most other chunks belong to overwritten
// blobs, which no client reads.
func (s *Sim) newestChunks() []extent.Ref {
	var refs []extent.Ref
	for i := len(s.ops) - 1; i >= 0 && len(refs) < 4*corruptMax; i-- {
		if s.ops[i].index > 0 {
			refs = append(refs, s.ops[i].payload.refs...)
		}
	}
	return refs
}

// corruptChunk flips a bit of the payload of a chunk that the other nodes hold intact.
func (s *Sim) corruptChunk(m *member, ref extent.Ref) {
	data := make([]byte, ref.Length)
	for _, other := range m.l.holders(geo.FirstRange(geo.Blob)) {
		if other.n == nil || other.killed != nil || !other.intact(ref, data) {
			return
		}
	}
	path, at, err := find(m.fs, extentsDir, data)
	if err != nil {
		s.fail(fmt.Errorf("%w: damage: %w", ErrStore, err))
	}
	if path == "" {
		return
	}
	s.counts.ChunkDamaged++
	s.event("%s node %d: bit of chunk %s flipped", m.l.name, m.id, ref.ID)
	m.corrupted[ref.ID] = ref
	i := s.rng.IntN(len(data))
	if err := flip(m.fs, path, at+i, data[i]); err != nil {
		s.fail(fmt.Errorf("%w: damage: %w", ErrStore, err))
	}
}

// unrepaired returns which damaged chunk of the node is not repaired although a peer has it
// intact, "" for none. It reads the disk and not through the node: a read would reveal the
// damage, which the scrub has to find. A chunk that is not there was dropped since nothing names it, also if the disk has it
// until the drop is durable, or left out when the store opened: where no record vouches for it the damage looks like a torn
// write.
func (m *member) unrepaired() string {
	if len(m.corrupted) == 0 {
		return ""
	}
	store, err := m.crashedExtents()
	if err != nil {
		return err.Error()
	}
	why := ""
	for id, ref := range m.corrupted {
		_, err := store.Read(ref, 0, make([]byte, ref.Length))
		if err == nil || m.collected[id] || errors.Is(err, extent.ErrNotFound) && !m.l.names(id) {
			delete(m.corrupted, id)
			continue
		}
		for _, other := range m.l.members {
			if other != m && other.n.Extents().Durable(id) && !other.isCorrupted(ref) {
				why = max(why, fmt.Sprintf("chunk %s: %v", id, err))
			}
		}
	}
	if err := store.Close(); err != nil {
		return err.Error()
	}
	return why
}

// names reports whether a row of a blob here names a chunk.
func (l *location) names(id extent.ChunkID) bool {
	for part, rows := range l.history[geo.FirstRange(geo.Blob)].m.parts {
		for row, v := range rows {
			refs, err := blobs.RowChunks([]byte(part+row), []byte(v))
			if err != nil {
				l.s.fail(err)
			}
			if slices.ContainsFunc(refs, func(ref extent.Ref) bool { return ref.ID == id }) {
				return true
			}
		}
	}
	return false
}

// intact reads a chunk of the node into data, and reports whether it is whole.
func (m *member) intact(ref extent.Ref, data []byte) bool {
	_, err := m.n.ReadChunk(ref, 0, data)
	return err == nil
}

// isCorrupted reports whether the node's copy of a chunk was damaged and is not repaired.
func (m *member) isCorrupted(ref extent.Ref) bool {
	if _, ok := m.corrupted[ref.ID]; !ok {
		return false
	}
	if m.n != nil && m.intact(ref, make([]byte, ref.Length)) {
		delete(m.corrupted, ref.ID)
		return false
	}
	return true
}
