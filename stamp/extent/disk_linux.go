package extent

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// osReader: readDirect works.
const osReader = true

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
