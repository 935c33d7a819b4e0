package extent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const osWriters = true

// What a file grows by at once, ahead of what is written. A file that grows with each
// write makes each fdatasync write the file's metadata too, which takes as long again.
const (
	pagesStep = 8 << 20
	zerosStep = 1 << 20
)

// osWriter writes to the operating system's file, past the page cache if it can: then
// offsets, lengths and addresses are multiples of pageBytes.
type osWriter struct {
	path   string
	f      *os.File
	direct bool
	// pages: the file is for chunks of whole pages, whether direct or not.
	pages bool
	// room is the size of the file; it is taken in steps, up to max where that suffices.
	room, max int64
}

func openOSWriter(path string, sizeMax int64, pages bool) (*osWriter, error) {
	w := &osWriter{path: path, direct: pages, pages: pages, max: sizeMax}
	if err := w.open(); err != nil {
		return nil, err
	}
	info, err := w.f.Stat()
	if err != nil {
		return nil, errors.Join(err, w.f.Close())
	}
	w.room = info.Size()
	return w, nil
}

func (w *osWriter) open() error {
	flags := os.O_RDWR | os.O_CREATE
	if w.direct {
		flags |= unix.O_DIRECT
	}
	var err error
	w.f, err = os.OpenFile(w.path, flags, 0o666)
	if w.direct && errors.Is(err, unix.EINVAL) {
		w.direct = false
		return w.open()
	}
	return err
}

// write takes room ahead and writes. A file system may refuse O_DIRECT as late as at
// the first write, which is that of the file header: then nothing was written, and the
// file is written through the page cache.
func (w *osWriter) write(off int64, parts ...[]byte) error {
	end := off
	for _, p := range parts {
		end += int64(len(p))
	}
	if end > w.room && off > 0 {
		if err := w.grow(end); err != nil {
			return fmt.Errorf("take room: %w", err)
		}
	}
	err := w.writeAll(off, parts)
	if w.direct && off == 0 && errors.Is(err, unix.EINVAL) {
		w.direct = false
		if err := errors.Join(w.f.Close(), w.open()); err != nil {
			return err
		}
		return w.writeAll(off, parts)
	}
	return err
}

func (w *osWriter) writeAll(off int64, parts [][]byte) error {
	for {
		n, err := unix.Pwritev(int(w.f.Fd()), parts, off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		off += int64(n)
		for len(parts) > 0 && n >= len(parts[0]) {
			n -= len(parts[0])
			parts = parts[1:]
		}
		if len(parts) == 0 {
			return nil
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		parts = append([][]byte{parts[0][n:]}, parts[1:]...)
	}
}

// grow takes room for the file up to end and ahead. Small chunks have an fdatasync
// for a few KiB: for them the room is written, with zeros, which the chunks then
// overwrite before they reach the disk, so that only one fdatasync in a step meets
// metadata. For large ones it is only reserved: writing all bytes twice costs more than
// the metadata, until the file is recycled and has neither.
func (w *osWriter) grow(end int64) error {
	if w.pages {
		to := max(end, min(end+pagesStep, w.max))
		err := unix.Fallocate(int(w.f.Fd()), 0, w.room, to-w.room)
		if err == nil {
			w.room = to
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = nil
		}
		return err
	}
	zeros := make([]byte, max(end, min(end+zerosStep, w.max))-w.room)
	n, err := w.f.WriteAt(zeros, w.room)
	w.room += int64(n)
	return err
}

func (w *osWriter) trim(end int64) error {
	if end >= w.room {
		return nil
	}
	w.room = end
	return w.f.Truncate(end)
}

func (w *osWriter) Close() error { return w.f.Close() }

// readDirect fills p from offset off of a file, past the page cache; both are multiples
// of pageBytes. The end of the file may come first.
func readDirect(path string, p []byte, off int64) (int, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(p, off)
	return n, errors.Join(err, f.Close())
}

// mapBytes returns n bytes outside the heap, from a page on; ok is false if there are none
// to be had.
func mapBytes(n int) (b []byte, ok bool) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return b, err == nil
}

func unmapBytes(b []byte) { _ = unix.Munmap(b) } // It fails for what is no mapping alone.
