package extent

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/rawfile"
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
// files of pages are written past the page cache where the file system lets us.
func (s *Store) openWriter(path string, unit uint32) (writer, error) {
	if raw := rawfile.Of(s.fs); raw != nil {
		return openRawWriter(raw, path, s.opts.ExtentBytesMax, unit == pageBytes)
	}
	f, err := s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsWriter{f}, nil
}

// What a file grows by at once, ahead of what is written. A file that grows with each
// write makes each fdatasync write the file's metadata too, which takes as long again.
const (
	pagesStep = 8 << 20
	zerosStep = 1 << 20
)

// rawWriter writes past the page cache if it can: then
// offsets, lengths and addresses are multiples of pageBytes.
type rawWriter struct {
	fs     rawfile.FS
	path   string
	f      rawfile.File
	direct bool
	// pages: the file is for chunks of whole pages, whether direct or not.
	pages bool
	// room is the size of the file; it is taken in steps, up to max where that suffices.
	room, max int64
}

func openRawWriter(fs rawfile.FS, path string, sizeMax int64, pages bool) (*rawWriter, error) {
	w := &rawWriter{fs: fs, path: path, direct: pages, pages: pages, max: sizeMax}
	if err := w.open(); err != nil {
		return nil, err
	}
	var err error
	if w.room, err = w.f.Size(); err != nil {
		return nil, errors.Join(err, w.f.Close())
	}
	return w, nil
}

func (w *rawWriter) open() (err error) {
	if w.f, err = w.fs.OpenRaw(w.path, w.direct); w.direct && errors.Is(err, rawfile.ErrNoDirect) {
		w.direct = false
		return w.open()
	}
	return err
}

// write takes room ahead and writes. A file system may refuse direct writes as late as at
// the first one, which is that of the file header: then nothing was written, and the
// file is written through the page cache.
func (w *rawWriter) write(off int64, parts ...[]byte) error {
	end := off
	for _, p := range parts {
		end += int64(len(p))
	}
	if end > w.room && off > 0 {
		if err := w.grow(end); err != nil {
			return fmt.Errorf("take room: %w", err)
		}
	}
	err := w.f.WriteVec(off, parts...)
	if w.direct && off == 0 && errors.Is(err, rawfile.ErrNoDirect) {
		w.direct = false
		if err := errors.Join(w.f.Close(), w.open()); err != nil {
			return err
		}
		err = w.f.WriteVec(off, parts...)
	}
	if err == nil {
		w.room = max(w.room, end) // Room that is taken ahead begins behind it, and may be taken with zeros.
	}
	return err
}

// grow takes room for the file up to end and ahead. Small chunks have an fdatasync
// for a few KiB: for them the room is written, with zeros, which the chunks then
// overwrite before they reach the disk, so that only one fdatasync in a step meets
// metadata. For large ones it is only reserved: writing all bytes twice costs more than
// the metadata, until the file is recycled and has neither.
func (w *rawWriter) grow(end int64) error {
	if w.pages {
		to := max(end, min(end+pagesStep, w.max))
		err := w.f.Allocate(w.room, to-w.room)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err == nil {
			w.room = to
		}
		return err
	}
	zeros := make([]byte, max(end, min(end+zerosStep, w.max))-w.room)
	if err := w.f.WriteVec(w.room, zeros); err != nil {
		return err
	}
	w.room += int64(len(zeros))
	return nil
}

func (w *rawWriter) trim(end int64) error {
	if end >= w.room {
		return nil
	}
	w.room = end
	return w.f.Truncate(end)
}

func (w *rawWriter) Close() error { return w.f.Close() }

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
