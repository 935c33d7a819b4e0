package extent

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const nameSuffix = ".ext"

// file is one extent. Its numbers grow in the order of creation and a number in use
// is never given twice.
type file struct {
	number uint64
	path   string
	inc    incarnation
	// r reads, and syncs too: the vfs contract forbids a Sync beside a Write on one
	// handle, and on two they may overlap. fdatasync covers the file, not the handle.
	r vfs.File

	// w appends; nil once the file is sealed and its last mark is durable. Guarded
	// by Store.turn.
	w vfs.File
	// marked is the synced offset that the last mark names. Guarded by Store.turn.
	marked int64

	// The rest is guarded by Store.mu; size changes only under Store.turn too.

	// size is the end of what was written in full, marks included.
	size int64
	// dataEnd is the end of the last chunk. Invariant: dataEnd <= size.
	dataEnd int64
	// synced: all bytes before it were covered by an fdatasync that succeeded.
	synced int64
	// sealed: no chunk will be appended.
	sealed bool
	// keep: parts of the file are lost and unnamed, so it is not unlinked: what was
	// in it may yet be wanted by whoever repairs.
	keep bool
	// live counts the index entries that point here.
	live int
	// refs counts the users of r: the store itself until the file is dropped, and
	// each call that reads or syncs. The last one closes r.
	refs int
	// gone: dropped from the store.
	gone bool
	// dirty: in Store.dirty.
	dirty bool
}

func fileName(number uint64) string { return fmt.Sprintf("%06d%s", number, nameSuffix) }

// parseFileName is the inverse of fileName; ok is false for any other name.
func parseFileName(name string) (number uint64, ok bool) {
	digits, found := strings.CutSuffix(name, nameSuffix)
	if !found {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && fileName(number) == name
}

// createFile makes an extent and returns when file and name are durable.
func (s *Store) createFile() (*file, error) {
	e := &file{number: s.nextNumber, path: s.fs.PathJoin(s.dir, fileName(s.nextNumber)), refs: 1}
	s.nextNumber++
	if _, err := io.ReadFull(s.opts.Rand, e.inc[:]); err != nil {
		return nil, fmt.Errorf("draw the incarnation of %s: %w", e.path, err)
	}
	var err error
	if e.w, err = s.fs.Create(e.path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, fmt.Errorf("create extent: %w", err)
	}
	if err := s.prepareFile(e); err != nil {
		_ = e.w.Close() // the error that counts is the first one
		return nil, err
	}
	e.size, e.dataEnd, e.synced, e.marked = recordBytes, recordBytes, recordBytes, recordBytes
	return e, nil
}

func (s *Store) prepareFile(e *file) error {
	if _, err := e.w.Write(encodeFileHeader(e.inc)); err != nil {
		return fmt.Errorf("write header of %s: %w", e.path, err)
	}
	if err := e.w.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", e.path, err)
	}
	if err := syncDir(s.fs, s.dir); err != nil {
		return err
	}
	var err error
	if e.r, err = s.fs.Open(e.path); err != nil {
		return fmt.Errorf("open extent: %w", err)
	}
	return nil
}

// writable returns the active extent with room for n bytes, sealing a full one and
// making the next. The caller holds turn.
func (s *Store) writable(n int64) (*file, error) {
	if e := s.active; e != nil {
		if e.size+n <= s.opts.ExtentBytesMax || e.size == recordBytes {
			return e, nil
		}
		s.active = nil
		if err := s.seal(e); err != nil {
			return nil, err
		}
	}
	e, err := s.createFile()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.files[e.number] = e
	s.mu.Unlock()
	s.active = e
	return e, nil
}

// seal ends the appending to e. The caller holds turn.
func (s *Store) seal(e *file) error {
	s.mu.Lock()
	e.sealed = true
	s.mu.Unlock()
	if err := s.settle(e); err != nil {
		return err
	}
	return s.reap(e)
}

// settle writes down how far e is durable, and closes the writing side of a sealed
// file when all of it is. A mark is not synced by itself: until it reaches the disk
// a restart only copies more than it had to. The caller holds turn.
func (s *Store) settle(e *file) error {
	s.mu.Lock()
	synced, done := e.synced, e.sealed && e.dataEnd <= e.synced
	idle := e.w == nil || s.failed != nil
	s.mu.Unlock()
	if idle {
		return nil
	}
	if e.marked < synced {
		var b [recordBytes]byte
		record{magic: magicMark, inc: e.inc, offset: e.size, synced: synced}.encode(b[:])
		if _, err := e.w.Write(b[:]); err != nil {
			return fmt.Errorf("write mark to %s: %w", e.path, err)
		}
		e.marked = synced
		s.mu.Lock()
		e.size += recordBytes
		s.mu.Unlock()
	}
	if !done {
		return nil
	}
	if err := e.r.SyncData(); err != nil {
		return fmt.Errorf("sync marks of %s: %w", e.path, err)
	}
	w := e.w
	e.w = nil
	if err := w.Close(); err != nil {
		return fmt.Errorf("close %s: %w", e.path, err)
	}
	return nil
}

// reap unlinks e if it is sealed and nothing in it lives. Its chunks may come back
// if the machine fails before the directory is written; the caller of Delete must
// expect that anyhow, so the directory is not synced. The caller holds turn.
func (s *Store) reap(e *file) error {
	s.mu.Lock()
	if !e.sealed || e.live > 0 || e.keep || e.gone || s.failed != nil {
		s.mu.Unlock()
		return nil
	}
	e.gone = true
	delete(s.files, e.number)
	if e.dirty {
		s.dirty = slices.DeleteFunc(s.dirty, func(d *file) bool { return d == e })
	}
	s.mu.Unlock()
	defer s.unref(e)
	if e.w != nil {
		w := e.w
		e.w = nil
		if err := w.Close(); err != nil {
			return fmt.Errorf("close %s: %w", e.path, err)
		}
	}
	if err := s.fs.Remove(e.path); err != nil {
		return fmt.Errorf("unlink extent: %w", err)
	}
	return nil
}

// unref gives back one use of e.r.
func (s *Store) unref(e *file) {
	s.mu.Lock()
	e.refs--
	last := e.refs == 0
	s.mu.Unlock()
	if last {
		_ = e.r.Close() // nothing was written through it
	}
}

// syncDir makes the names in dir durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	if err := d.Sync(); err != nil {
		_ = d.Close() // the error that counts is the first one
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	if err := d.Close(); err != nil {
		return fmt.Errorf("close folder %s: %w", dir, err)
	}
	return nil
}
