package extent

import (
	"bytes"
	"cmp"
	"slices"
)

// FileInfo is what a store knows of one extent file.
type FileInfo struct {
	Number uint64
	Path   string
	// Bytes is the end of what was written, Durable of what was fsynced, or copied to be.
	Bytes, Durable int64
	// Chunks counts what lives in it, LiveBytes the room that takes, header and CRCs
	// included; Damaged those of them that answer ErrCorrupt.
	Chunks    int
	LiveBytes int64
	Damaged   int
	// LostBytes are durable ones in which nothing could be recognized.
	LostBytes int64
}

// Files returns the extents in order of number. It visits the whole index.
func (s *Store) Files() []FileInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	damage := map[*file]int{}
	for _, en := range s.index {
		if en.state == damaged {
			damage[en.file]++
		}
	}
	out := make([]FileInfo, 0, len(s.files))
	for _, e := range s.sortedFiles() {
		out = append(out, FileInfo{
			Number: e.number, Path: e.path, Bytes: e.size, Durable: e.synced, Chunks: e.live, LiveBytes: e.liveBytes,
			Damaged: damage[e], LostBytes: e.lost,
		})
	}
	return out
}

// Place is where a chunk lies.
type Place struct {
	Ref    Ref
	File   uint64
	Offset int64
	// Damaged: reads answer ErrCorrupt. Unproven: it is whole, but no record vouches that
	// it was durable.
	Damaged, Unproven bool
}

// Places returns where the chunks of one extent lie, in order of offset.
func (s *Store) Places(file uint64) []Place {
	s.mu.Lock()
	var out []Place
	for id, en := range s.index {
		if en.file.number == file {
			out = append(out, Place{en.ref(id), file, en.offset, en.state == damaged, en.state == unproven})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), bytes.Compare(a.Ref.ID[:], b.Ref.ID[:]))
	})
	return out
}
