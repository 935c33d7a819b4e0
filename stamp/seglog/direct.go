package seglog

import (
	"errors"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Frames go past the page cache, which would take as much processor time again as all
// else in a commit. They are read through it, by replicas that lag and at open: the
// kernel drops from it what a direct write changes. A file system that plays crashes or
// faults, or has no such writes, gets ordinary ones.

// errNoDirect: the file system has no writes past the page cache; nothing was written.
var errNoDirect = errors.New("seglog: no direct writes")

// mayWriteDirect reports whether direct writes are worth a try.
func mayWriteDirect(fs vfs.FS) bool { return osDirect && fs == vfs.Default }

// writePages puts b, whole pages, at offset off of the active segment.
func (l *Log) writePages(s *segment, b []byte, off int64) error {
	if l.direct {
		err := s.writeDirect(b, off)
		if !errors.Is(err, errNoDirect) {
			return err
		}
		l.direct = false
	}
	_, err := s.file.WriteAt(b, off)
	return err
}

func (s *segment) writeDirect(b []byte, off int64) error {
	if s.direct == nil {
		f, err := openDirect(s.path)
		if err != nil {
			return err
		}
		s.direct = f
	}
	return writeDirect(s.direct, b, off)
}

// endDirect closes the handle of direct writes: only an active segment has one.
func (s *segment) endDirect() error {
	f := s.direct
	if f == nil {
		return nil
	}
	s.direct = nil
	return f.Close()
}

// pageAligned returns b, or a copy of it, at an address as direct writes want it, with
// room to grow.
func pageAligned(b []byte) []byte {
	if offPage(b) == 0 {
		return b
	}
	room := make([]byte, 2*len(b)+pageBytes)
	if off := offPage(room); off > 0 {
		room = room[pageBytes-off:]
	}
	return append(room[:0], b...)
}

// offPage is how far behind the beginning of a page b begins.
func offPage(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageBytes) }
