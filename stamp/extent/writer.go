package extent

import (
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writer is the writing side of an extent file. Its calls come one at a time. It does
// not sync: that is done through the reading side (see file.r).
type writer interface {
	// write puts the parts, one behind the other, at offset off.
	write(off int64, parts ...[]byte) error
	// trim gives room that was taken ahead back to the file system: nothing lies at or
	// above end.
	trim(end int64) error
	Close() error
}

// openWriter opens the file for writing and makes it if it is not there. On a disk,
// files of pages are written past the page cache where the file system lets us; a file
// system that plays crashes or faults sees every write.
func (s *Store) openWriter(path string, unit uint32) (writer, error) {
	if s.fs == vfs.Default && osWriters {
		return openOSWriter(path, s.opts.ExtentBytesMax, unit == pageBytes)
	}
	f, err := s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsWriter{f}, nil
}

// vfsWriter writes through the file system it was given; the file grows as it is written.
type vfsWriter struct{ vfs.File }

func (w vfsWriter) write(off int64, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := w.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	return nil
}

func (vfsWriter) trim(int64) error { return nil }

// alignedBytes returns n zero bytes that begin on a page, as O_DIRECT wants them; less
// than a page, which nobody writes so, begin anywhere.
func alignedBytes(n int) []byte {
	if n < pageBytes {
		return make([]byte, n)
	}
	b := make([]byte, n+pageBytes-1)
	skip := 0
	if rest := int(addressOf(b) % pageBytes); rest != 0 {
		skip = pageBytes - rest
	}
	return b[skip : skip+n : skip+n]
}

// aligned reports whether b begins on a page.
func aligned(b []byte) bool { return addressOf(b)%pageBytes == 0 }

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
