// Package rawtest is a disk for crash tests of what is written past the page cache: in memory, and with the semantics of
// Linux. So these tests run the code that production runs.
package rawtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/rawfile"
)

// SectorBytes is what a disk writes whole. A page is several of them.
const SectorBytes = 512

// Disk is a file system in memory. It refuses direct writes that are not aligned, and a crash keeps some of the sectors
// that were not synced, of a page and of a length that was allocated too.
type Disk struct {
	*vfs.MemFS
	// Refuses has every direct write refused, as some file systems do.
	Refuses bool
	// Before is called before each raw write, nil for nobody. An error stands in its place.
	Before func(path string) error
	// Directs counts the direct writes.
	Directs int
}

// New returns an empty disk.
func New() *Disk { return &Disk{MemFS: vfs.NewCrashableMem()} }

// Crash returns the disk as a crash leaves it: what was synced, and of the rest each sector with a probability. Files
// whose names were not synced may be there or not.
func (d *Disk) Crash(percent int, rng *rand.Rand) (*Disk, error) {
	after := &Disk{MemFS: d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), Refuses: d.Refuses}
	now := d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
	if percent == 0 || percent == 100 {
		return after, nil
	}
	return after, tearIn(after, now, "", percent, rng)
}

// tearIn takes some of the sectors of all files of a folder from the disk as it was. The clone has taken whole blocks of
// them.
func tearIn(after *Disk, now *vfs.MemFS, dir string, percent int, rng *rand.Rand) error {
	names, err := after.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := after.PathJoin(dir, name)
		if info, err := after.Stat(path); err != nil {
			return err
		} else if info.IsDir() {
			if err := tearIn(after, now, path, percent, rng); err != nil {
				return err
			}
			continue
		}
		was, err := read(now, path)
		if err != nil {
			continue // It was renamed or removed, and that was not synced.
		}
		if err := tear(after, path, was, percent, rng); err != nil {
			return fmt.Errorf("tear %s: %w", path, err)
		}
	}
	return nil
}

func tear(after *Disk, path string, was []byte, percent int, rng *rand.Rand) error {
	have, err := read(after, path)
	if err != nil || bytes.Equal(have, was) {
		return err
	}
	f, err := after.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for at := 0; at < min(len(was), len(have)) && err == nil; at += SectorBytes {
		sector := was[at:min(at+SectorBytes, len(was), len(have))]
		if !bytes.Equal(sector, have[at:at+len(sector)]) && rng.IntN(100) < percent {
			_, err = f.WriteAt(sector, int64(at))
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func read(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// OpenRaw implements rawfile.FS.
func (d *Disk) OpenRaw(path string, direct bool) (rawfile.File, error) {
	f, err := d.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	return &file{f, d, path, direct}, err
}

type file struct {
	vfs.File
	d      *Disk
	path   string
	direct bool
}

// WriteVec implements rawfile.File.
func (f *file) WriteVec(off int64, parts ...[]byte) error {
	if f.direct {
		at := off
		for _, p := range parts {
			if f.d.Refuses || at%rawfile.PageBytes != 0 || len(p)%rawfile.PageBytes != 0 || address(p)%rawfile.PageBytes != 0 {
				return fmt.Errorf("%w: %d bytes at %d of %s", rawfile.ErrNoDirect, len(p), at, f.path)
			}
			at += int64(len(p))
		}
		f.d.Directs++
	}
	if f.d.Before != nil {
		if err := f.d.Before(f.path); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if _, err := f.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	return nil
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Allocate implements rawfile.File.
func (f *file) Allocate(off, n int64) error {
	size, err := f.Size()
	if err != nil || off+n <= size {
		return err
	}
	_, err = f.WriteAt(make([]byte, off+n-size), size)
	return err
}

// Truncate implements rawfile.File. The crash comes before it is on the disk.
func (*file) Truncate(int64) error { return nil }

// Size implements rawfile.File.
func (f *file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
