// Package rawfile writes files past the page cache, which would take as much processor time again as all else in a
// write. Log and extents write so. Reading goes through the page cache: the kernel drops from it what such a write
// changes.
//
// A file system in memory can be an FS too: then tests play crashes in the code that runs in production.
package rawfile

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoDirect: the file system has no writes past the page cache, or not of these bytes: offset, length and address
// must be multiples of PageBytes. Nothing was written. It may come as late as at the first write.
var ErrNoDirect = errors.New("rawfile: no direct writes")

// PageBytes is what direct writes are aligned to.
const PageBytes = 4096

// FS opens files for raw writes.
type FS interface {
	// OpenRaw opens a file for writing, and makes it if it is not there. With direct, writes go past the page cache.
	OpenRaw(path string, direct bool) (File, error)
}

// File is one open file. Its calls come one at a time, and sync nothing.
type File interface {
	io.Closer
	// WriteVec writes the parts, one behind the other, from offset off on, all or an error.
	WriteVec(off int64, parts ...[]byte) error
	// Allocate reserves n bytes from offset off on, which read as zeros and are part of the file from then on.
	// errors.ErrUnsupported: the file system cannot.
	Allocate(off, n int64) error
	// Truncate cuts the file off.
	Truncate(size int64) error
	// Size is the length of the file.
	Size() (int64, error)
}

// Of returns the raw side of a file system; nil if it has none.
func Of(fs vfs.FS) FS {
	if fs == vfs.Default {
		return system
	}
	raw, _ := fs.(FS)
	return raw
}
