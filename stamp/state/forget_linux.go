package state

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Forget asks the kernel to drop its copy of a file, so that the next reads come from the
// disk. What is dirty stays. It is a wish: no answer means anything.
func Forget(f vfs.File) {
	if fd := f.Fd(); fd != vfs.InvalidFd {
		_ = unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	}
}
