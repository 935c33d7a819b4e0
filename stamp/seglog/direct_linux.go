package seglog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const osDirect = true

func openDirect(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	return f, noDirect(err)
}

func writeDirect(f *os.File, b []byte, off int64) error {
	_, err := f.WriteAt(b, off)
	return noDirect(err)
}

// noDirect distinguishes a refusal from other errors. It may come as late as at the write.
func noDirect(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: %w", errNoDirect, err)
	}
	return err
}
