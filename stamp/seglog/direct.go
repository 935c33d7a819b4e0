package seglog

import (
	"errors"
	"unsafe"

	"antipode/stamp/rawfile"
)

// Frames go past the page cache, which would take as much processor time again as all
// else in a commit. They are read through it, by replicas that lag and at open. Where the
// file system has no such writes, frames get ordinary ones.

// writePages puts b, whole pages, at offset off of the active segment.
func (l *Log) writePages(s *segment, b []byte, off int64) error {
	if l.direct != nil {
		err := l.writeDirect(s, b, off)
		if !errors.Is(err, rawfile.ErrNoDirect) {
			return err
		}
		l.direct = nil
	}
	_, err := s.file.WriteAt(b, off)
	return err
}

func (l *Log) writeDirect(s *segment, b []byte, off int64) error {
	if s.direct == nil {
		f, err := l.direct.OpenRaw(s.path, true)
		if err != nil {
			return err
		}
		s.direct = f
	}
	return s.direct.WriteVec(off, b)
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
