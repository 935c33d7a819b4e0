package state

import (
	"path"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reads counts the blocks of tables that were in no cache and were read for somebody who waits: not those for compactions,
// which Pebble reads through files that it opens for sequential reads.
func (s *Store) Reads() uint64 { return s.reads.Load() }

// readFS counts them.
type readFS struct {
	vfs.FS
	reads *atomic.Uint64
}

// Open implements vfs.FS.
func (fs readFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, o...)
	if err != nil || path.Ext(name) != ".sst" || slices.Contains(o, vfs.SequentialReadsOption) {
		return f, err
	}
	return readFile{f, fs.reads}, nil
}

type readFile struct {
	vfs.File
	reads *atomic.Uint64
}

// ReadAt implements io.ReaderAt.
func (f readFile) ReadAt(p []byte, off int64) (int, error) {
	f.reads.Add(1)
	return f.File.ReadAt(p, off)
}
