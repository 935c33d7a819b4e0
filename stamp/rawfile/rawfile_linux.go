package rawfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

var system FS = osFS{} //nolint:gochecknoglobals // Immutable.

type osFS struct{}

// OpenRaw implements FS.
func (osFS) OpenRaw(path string, direct bool) (File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if direct {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, refused(err, direct)
	}
	return osFile{f, direct}, nil
}

// refused distinguishes a refusal of direct writes from other errors.
func refused(err error, direct bool) error {
	if direct && errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: %w", ErrNoDirect, err)
	}
	return err
}

type osFile struct {
	*os.File
	direct bool
}

// WriteVec implements File.
func (f osFile) WriteVec(off int64, parts ...[]byte) error {
	for {
		n, err := unix.Pwritev(int(f.Fd()), parts, off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return refused(err, f.direct)
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

// Allocate implements File.
func (f osFile) Allocate(off, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return errors.ErrUnsupported
	}
	return err
}

// Size implements File.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
