package room

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/durable"
)

// A store that is found damaged is set aside under asideName, so that an operator can examine it. Until the replicas
// of the node are rebuilt it may also be all that is left of them, and what `range recover` starts from: of two nodes
// that set their stores aside at the same moment none has the data elsewhere. So nothing is removed before all
// replicas of the node's ranges are whole, here and on the other nodes; and nothing by itself that was set aside
// before a range was re-formed with loss (R4), since it may hold what was lost. Among the others the newest one of
// each store is kept, and removed too once the disk is full.

// asideName lies between the name of a store and the time at which it was set aside, in nanoseconds.
const asideName = ".damaged-"

// recoveriesName is a file in the folder of a store that was set aside: how often ranges had been re-formed by then.
const recoveriesName = "RECOVERIES"

// SetAside renames the folder of a damaged store, and makes an empty one in its place. recoveries grows whenever a range
// of the node is re-formed.
func SetAside(fs vfs.FS, dir string, at time.Time, recoveries uint64) (aside string, err error) {
	aside = fmt.Sprintf("%s%s%d", dir, asideName, at.UnixNano())
	// On a disk that is full it cannot be written. It then counts as 0: the store is kept if a range ever was re-formed.
	_ = durable.Write(fs, dir, recoveriesName, strconv.AppendUint(nil, recoveries, 10))
	if err := fs.Rename(dir, aside); err != nil {
		return "", err
	}
	return aside, durable.MkdirAll(fs, dir)
}

// stored is a store that was set aside.
type stored struct {
	name, kind string
	at         int64
	recoveries uint64
}

// aside are the stores of a node that were set aside.
type aside struct {
	bytes  atomic.Int64
	stores []stored // the oldest first
	// removing: a removal is under way.
	removing atomic.Bool
}

// FindAside finds the stores that were set aside. It is called once the stores are open, which may set some aside.
func (w *Watch) FindAside() error {
	fs, dir := w.o.FS, w.o.Dir
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, at, ok := strings.Cut(name, asideName)
		n, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			continue
		}
		s := stored{name: name, kind: kind, at: n}
		if b, err := durable.Read(fs, fs.PathJoin(dir, name, recoveriesName)); err == nil {
			s.recoveries, _ = strconv.ParseUint(string(b), 10, 64) // Zero with an error.
		}
		w.aside.stores = append(w.aside.stores, s)
		w.aside.bytes.Add(size(fs, fs.PathJoin(dir, name)))
	}
	slices.SortFunc(w.aside.stores, func(a, b stored) int { return cmp.Compare(a.at, b.at) })
	return nil
}

// size is the size of what is below a path. What cannot be read does not count.
func size(fs vfs.FS, path string) int64 {
	info, err := fs.Stat(path)
	if err != nil {
		return 0
	}
	if !info.IsDir() {
		return info.Size()
	}
	names, _ := fs.List(path)
	total := int64(0)
	for _, name := range names {
		total += size(fs, fs.PathJoin(path, name))
	}
	return total
}

// AsideBytes is the size of the stores that are set aside.
func (w *Watch) AsideBytes() int64 { return w.aside.bytes.Load() }

// asideTicks lie between two looks at what is set aside.
const asideTicks = 100

// DropAside removes what nobody needs any more of what is set aside; it is called once a tick. whole reports whether all
// replicas of the node's ranges are whole, recoveries returns what SetAside takes, as of now, and run runs the removal
// beside the caller.
func (w *Watch) DropAside(whole func() bool, recoveries func() uint64, run func(func())) {
	a := &w.aside
	if len(a.stores) == 0 || a.removing.Load() || w.ticks%asideTicks != 0 || !whole() {
		return
	}
	now, full := recoveries(), w.Full()
	var out, kept []stored
	for i, s := range a.stores {
		newest := !slices.ContainsFunc(a.stores[i+1:], func(later stored) bool { return later.kind == s.kind })
		if s.recoveries < now || newest && !full {
			kept = append(kept, s)
		} else {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return
	}
	a.stores = kept
	a.removing.Store(true)
	run(func() {
		defer a.removing.Store(false)
		for _, s := range out {
			w.remove(s)
		}
	})
}

// remove removes a store that was set aside. One of which something is left is found at the next start.
func (w *Watch) remove(s stored) {
	path := w.o.FS.PathJoin(w.o.Dir, s.name)
	bytes := size(w.o.FS, path)
	if err := w.o.FS.RemoveAll(path); err != nil {
		w.o.Logger.Warn("cannot remove a damaged store that was set aside; tried again at the next start", "path", path, "error", err)
		return
	}
	w.aside.bytes.Add(-bytes)
	w.o.Logger.Warn("removed a damaged store that was set aside: the replicas here were rebuilt", "path", path, "bytes", bytes)
	w.o.Removed(fmt.Sprintf("%s, %d bytes", s.name, bytes))
}
