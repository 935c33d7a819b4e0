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

// Files returns the extents in order of number.
func (s *Store) Files() []FileInfo {
	list := make([]FileInfo, 0, s.Stats().Extents)
	s.eachFile(func(e *file) {
		list = append(list, FileInfo{
			Number: e.number, Path: e.path, Bytes: e.size, Durable: e.synced, Chunks: e.cells.live(), LiveBytes: e.liveBytes,
			Damaged: e.cells.states[damaged], LostBytes: e.lost,
		})
	})
	return list
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

// Places returns the places of the chunks of one extent, in order of offset.
func (s *Store) Places(number uint64) []Place {
	var out []Place
	some := make([]Place, 0, holdSteps)
	at := cursor{file: number}
	s.eachChunk(&at, func(e *file) bool { return e.number == number }, func(_ *file, c *cell) bool {
		some = append(some, Place{c.ref(), number, c.offset, c.state == damaged, c.state == unproven})
		return true
	}, func() bool {
		out, some = append(out, some...), some[:0]
		return at.file == number
	})
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), bytes.Compare(a.Ref.ID[:], b.Ref.ID[:]))
	})
	return out
}
