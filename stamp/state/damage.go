package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/feature"
)

// ErrDamaged: a folder was found damaged in an earlier life of the node, by something that
// opening it need not see.
var ErrDamaged = errors.New("state: store was found damaged")

// Damaged reports whether a store cannot be opened because of what is in its folder: bytes
// that changed, or files that are gone.
func Damaged(err error) bool {
	if errors.Is(err, feature.ErrLater) {
		return false
	}
	return errors.Is(err, ErrLogCorrupt) || errors.Is(err, ErrDamaged) || pebble.IsCorruptionError(err) || errors.Is(err, os.ErrNotExist)
}

// dropDamagedOptions removes OPTIONS files that Pebble would refuse. They have no sum, so a
// flipped bit passes for other options or for none; Pebble writes a new one at each
// opening, and the comparer, which alone must stay the same, is in the manifest, which has
// sums. A store that is opened to be looked at is left as it is.
func dropDamagedOptions(dir string, o *pebble.Options) error {
	names, err := o.FS.List(dir)
	if o.ReadOnly || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "OPTIONS-") {
			continue
		}
		path := o.FS.PathJoin(dir, name)
		f, err := o.FS.Open(path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		refused := o.CheckCompatibility(dir, string(text))
		if refused == nil {
			continue
		}
		o.Logger.Errorf("%s is damaged (%s): it is written again", path, refused)
		if err := o.FS.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// checkManifest returns ErrDamaged for a store whose manifest ends behind its first record.
// Pebble takes what it cannot read for the torn end of the last write. Of any later record
// that is as good: the store is one version older. But the first says which tables there
// are and only the second the last sequence number: without it new rows would be numbered
// from the beginning, and older rows of the tables would hide them. No crash does that: the
// two are synced before the manifest is used, but in a new store, which has no tables.
func checkManifest(fs vfs.FS, dir string) error {
	desc, err := pebble.Peek(dir, fs)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !desc.Exists {
		return err
	}
	f, err := fs.Open(desc.ManifestFilename)
	if err != nil {
		return err
	}
	records := record.NewReader(f, 0)
	whole := 0
	for whole < 2 {
		r, err := records.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			break
		}
		whole++
	}
	if err := f.Close(); err != nil || whole == 2 {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			return fmt.Errorf("%w: %s ends within its first two records", ErrDamaged, desc.ManifestFilename)
		}
	}
	return nil
}

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
