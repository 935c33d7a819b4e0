package extent

import (
	"fmt"
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
	// out is the appender that made the file; nil for one found at open.
	out *appender

	// w appends; nil once the file is sealed. Guarded by out.turn.
	w writer

	// The rest is guarded by Store.mu; size changes only under out.turn too.

	// size is the end of what was written in full, or recognized at open. The file may
	// be longer: room taken ahead, or what it held before it was recycled.
	size int64
	// synced: all bytes before it were covered by an fdatasync that succeeded.
	synced int64
	// sealed: no chunk will be appended.
	sealed bool
	// keep: parts of the file are lost and unnamed, so it is not dropped: what was in
	// it may yet be wanted by a repair.
	keep bool
	// incoming counts copies of Compact that are here and not in the index yet: the file is not
	// dropped before they are.
	incoming int
	// lost are the bytes in which nothing could be recognized at open.
	lost int64
	// blank: nothing but the header is in the file, for this incarnation.
	blank bool
	// cells are the chunks that are or were in the index from here, and liveBytes is the room
	// that those take which are.
	cells     cells
	liveBytes int64
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

// reap drops e if it is sealed and nothing in it lives: it becomes a spare, or is
// unlinked if there are enough of those, or if somebody still reads from it. Its chunks
// may come back if the machine fails before that is on the disk; the caller of Delete
// must expect that anyhow, so nothing is synced.
func (s *Store) reap(e *file) error {
	s.mu.Lock()
	if !e.sealed || e.cells.live() > 0 || e.incoming > 0 || e.keep || e.gone || s.failed != nil {
		s.mu.Unlock()
		return nil
	}
	e.gone = true
	s.removeFile(e)
	s.freed += uint64(e.size)
	if e.dirty {
		s.dirty = slices.DeleteFunc(s.dirty, func(d *file) bool { return d == e })
	}
	recycle := e.refs == 1 && len(s.spares)+s.blanking < s.opts.SparesMax
	if recycle {
		s.blanking++
	}
	s.mu.Unlock()
	defer s.unref(e)
	if !recycle {
		if err := s.fs.Remove(e.path); err != nil {
			return fmt.Errorf("unlink extent: %w", err)
		}
		return nil
	}
	err := s.blank(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blanking--
	if err != nil {
		return fmt.Errorf("blank extent %s: %w", e.path, err)
	}
	s.spares = append(s.spares, e.path)
	return nil
}

// blank gives a dropped file a header of another incarnation, so that its dead chunks
// do not come back at the next Open.
func (s *Store) blank(e *file) error {
	if e.blank {
		return nil
	}
	inc, err := s.newIncarnation(e.number)
	if err != nil {
		return err
	}
	w, err := s.openWriter(e.path, recordBytes)
	if err != nil {
		return err
	}
	page := make([]byte, pageBytes)
	encodeFileHeader(page, inc)
	if err := w.write(0, page); err != nil {
		_ = w.Close() // the error that counts is the first one
		return err
	}
	return w.Close()
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
