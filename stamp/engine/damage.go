package engine

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrDamaged: a folder was found damaged in an earlier life of the node, by something that
// opening it need not see.
var ErrDamaged = errors.New("engine: store was found damaged")

// damagedName is a file in the folder of a store that says so. It goes with the folder
// when that is set aside.
const damagedName = "DAMAGED"

// reasonBytesMax bounds what is kept of a reason.
const reasonBytesMax = 4 << 10

// MarkDamaged makes it durable that a store's folder holds damage: after it CheckDamaged
// says so, and the store is not to be opened again. The open store is not touched.
func MarkDamaged(fs vfs.FS, dir string, reason error) error {
	f, err := fs.Create(fs.PathJoin(dir, damagedName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("mark %s as damaged: %w", dir, err)
	}
	text := reason.Error()
	_, err = f.Write([]byte(text[:min(len(text), reasonBytesMax)]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("mark %s as damaged: %w", dir, err)
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("mark %s as damaged: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// CheckDamaged returns ErrDamaged, with the reason, for a folder that MarkDamaged marked.
func CheckDamaged(fs vfs.FS, dir string) error {
	f, err := fs.Open(fs.PathJoin(dir, damagedName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	reason, err := io.ReadAll(io.LimitReader(f, reasonBytesMax))
	return errors.Join(fmt.Errorf("%w: %s", ErrDamaged, reason), err, f.Close())
}
