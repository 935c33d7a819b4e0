package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// errSync: the disk failed an fsync. What it covered is lost.
var errSync = errors.New("sim: the disk failed an fsync")

// disk is a node's file system in one life: files in memory that keep what was synced,
// on a disk that fills up, fails an fsync, and loses its power in the middle of a write.
type disk struct {
	vfs.FS
	m    *member
	life int
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// roomPlain is the room on a disk, and roomFull what is left of it: for nothing, or some of what room.Level lists. What is
// free beside the reserve is so little that logs behind range snapshots come to their bounds.
const roomPlain = 1<<30 + 64<<10

var roomFull = [...]uint64{400 << 20, 200 << 20, 64 << 20} //nolint:gochecknoglobals // A table, never written.

// GetDiskUsage implements vfs.FS.
func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	avail := uint64(roomPlain)
	if d.m.left > 0 {
		avail = d.m.left
	} else if d.m.full {
		avail = roomFull[d.m.l.s.counts.DiskFull%uint64(len(roomFull))]
	}
	return vfs.DiskUsage{AvailBytes: avail, TotalBytes: roomPlain, UsedBytes: roomPlain - avail}, nil
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(name)(d.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.wrap(name)(d.FS.OpenReadWrite(name, c, opts...))
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(newname)(d.FS.ReuseForWrite(oldname, newname, c))
}

// The folders of a node whose files only the run's goroutine writes: when they are
// written depends on nothing else. Those of the state store Pebble writes in the background.
const (
	logDir     = dataDir + "/log"
	extentsDir = dataDir + "/extents"
	stateDir   = dataDir + "/state"
)

func (d *disk) wrap(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		for _, dir := range [...]string{logDir, extentsDir} {
			if err == nil && strings.HasPrefix(name, dir+"/") {
				return &diskFile{f, d, dir}, nil
			}
		}
		return f, err
	}
}

// diskFile is a file of log or extents.
type diskFile struct {
	vfs.File
	d   *disk
	dir string
}

// Write implements vfs.File.
func (f *diskFile) Write(p []byte) (int, error) {
	f.d.maybeKill()
	return f.File.Write(p)
}

// WriteAt implements vfs.File.
func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.maybeKill()
	f.takesTime(false)
	return f.File.WriteAt(p, off)
}

// Sync implements vfs.File.
func (f *diskFile) Sync() error {
	if err := f.d.sync(f.dir); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error {
	if err := f.d.sync(f.dir); err != nil {
		return err
	}
	f.takesTime(true)
	return f.File.SyncData()
}

// takesTime has the pass that writes or syncs the log take a while. A crash meanwhile finds that undone.
func (f *diskFile) takesTime(synced bool) {
	if f.dir == logDir && f.d.runs() {
		f.d.m.takesTime(synced)
	}
}

// runs reports whether the node of this life has started: its disk has no faults while it opens.
func (d *disk) runs() bool { return d.m.n != nil && d.m.life == d.life && d.m.killed == nil }

// maybeKill draws whether the node dies before a write, or before a sync.
func (d *disk) maybeKill() {
	if s := d.m.l.s; d.runs() && s.chance(s.rates.killIO) {
		d.m.kill()
	}
}

// sync fails once in the folder that is to fail.
func (d *disk) sync(dir string) error {
	d.maybeKill()
	if !d.runs() || d.m.failSync != dir {
		return nil
	}
	d.m.failSync, d.m.failed = "", true
	d.m.l.s.counts.SyncFailed++
	d.m.l.s.event("%s node %d: fsync of %s fails", d.m.l.name, d.m.id, dir)
	return errSync
}

// synced is the disk with exactly what was synced.
func (m *member) synced() *vfs.MemFS { return m.fs.CrashClone(vfs.CrashCloneCfg{}) }

// blockBytes is what a disk writes whole.
const blockBytes = 4096

// crashed is the disk after a crash: what was synced, and of the rest some blocks. Those of
// each file are drawn from a separate source: the state store's depend on how far Pebble
// is in the background.
func (m *member) crashed() *vfs.MemFS {
	s := m.l.s
	// The list of files is taken first: what Pebble writes meanwhile may depend on what it synced
	// since.
	before := m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	after := m.synced()
	keep := [...]float64{0, 0.3, 0.7, 1}[s.rng.IntN(4)]
	seed := s.rng.Uint64()
	if keep == 0 {
		return after
	}
	for _, dir := range [...]string{logDir, extentsDir, stateDir} {
		names, err := after.List(dir)
		if err != nil {
			continue
		}
		slices.Sort(names)
		for _, name := range names {
			path := dir + "/" + name
			torn, err := tear(before, after, path, keep, rand.New(rand.NewPCG(seed, xxhash.Sum64String(path))))
			if err != nil {
				s.fail(fmt.Errorf("%w: tear %s: %w", ErrStore, path, err))
			}
			if torn && dir != stateDir {
				s.counts.Torn++
			}
		}
	}
	return after
}

// tear writes some of the blocks of a file that were not synced to the disk after the
// crash.
func tear(before, after vfs.FS, path string, keep float64, rng *rand.Rand) (torn bool, err error) {
	have, err := readFile(after, path)
	if err != nil {
		return false, err
	}
	want, err := readFile(before, path)
	if err != nil {
		return false, nil //nolint:nilerr // It was renamed or removed, and that was not synced.
	}
	if len(want) < len(have) || bytes.Equal(have, want) {
		return false, nil
	}
	f, err := after.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false, err
	}
	for at := 0; at < len(want) && err == nil; at += blockBytes {
		block := want[at:min(at+blockBytes, len(want))]
		if at+len(block) <= len(have) && bytes.Equal(have[at:at+len(block)], block) || rng.Float64() >= keep {
			continue
		}
		torn = true
		_, err = f.WriteAt(block, int64(at))
	}
	return torn, errors.Join(err, f.Sync(), f.Close())
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}
