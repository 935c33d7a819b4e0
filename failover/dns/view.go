package dns

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/stamp/durable"
)

// entriesMax bounds the accounts of a View: about 300 bytes of memory each, and 80 of the file, which is
// written whole whenever an entry changes.
const entriesMax = 200_000

// ErrFull means that a View has as many accounts as it takes: names of others are not answered.
var ErrFull = fmt.Errorf("dns: more than %d accounts", entriesMax)

// ErrUnsaved means that the file could not be written: the view has what was merged, and a restart may not.
var ErrUnsaved = errors.New("dns: the file of names could not be written")

// View is where the names of all accounts lead to, by what was seen of both stamps. Methods may be
// called concurrently.
//
// Invariant: the epoch of an entry never goes back. An entry is on disk before a query is answered from it,
// so a restart does not go back either. If the disk fails, the newer entry is answered all the same, and
// written when the disk works again. A view of NewView has no file, and forgets with its process.
type View struct {
	// fs is nil without a file.
	fs  vfs.FS
	dir string

	// merging is held by the one call that changes the view; the fields below it are its.
	merging sync.Mutex
	// unsaved is set while the file is older than the entries.
	unsaved bool

	mu      sync.RWMutex
	entries map[geo.Account]held // guarded by mu
	// serial is the sum of the epochs of all entries, so that two servers with one view have one serial.
	serial  uint32   // guarded by mu
	known   bool     // guarded by mu; see Known
	watches []*Watch // guarded by mu
}

// NewView returns a view that is kept in memory only: after a restart it knows nothing until a stamp answers.
func NewView() *View { return &View{entries: map[geo.Account]held{}} }

// OpenView opens the view that is kept in a folder, which it makes. A damaged file is set aside, with an
// error in the log: then the view knows nothing until a stamp answers.
func OpenView(fs vfs.FS, dir string, log *slog.Logger) (*View, error) {
	if err := durable.MkdirAll(fs, dir); err != nil {
		return nil, err
	}
	v := NewView()
	v.fs, v.dir = fs, dir
	b, err := durable.Read(fs, fs.PathJoin(dir, fileName))
	if err != nil || b == nil {
		return v, err
	}
	entries, err := parseFile(b)
	if err != nil {
		aside := fileName + ".damaged"
		log.Error("the file of names is damaged and set aside: names are not answered until a location does", "folder", dir, "file", aside, "error", err)
		return v, errors.Join(fs.Rename(fs.PathJoin(dir, fileName), fs.PathJoin(dir, aside)), durable.SyncDir(fs, dir))
	}
	v.entries, v.known = entries, true
	for _, e := range entries {
		v.serial += uint32(e.Epoch.Number)
	}
	return v, nil
}

// Lookup returns the entry of an account.
func (v *View) Lookup(a geo.Account) (Entry, bool) {
	e, ok := v.lookup(a)
	return e.Entry, ok
}

func (v *View) lookup(a geo.Account) (held, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, ok := v.entries[a]
	return e, ok
}

// Known reports whether an account that is not in the view does not exist: once a file was read, or a
// stamp has listed its accounts.
func (v *View) Known() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.known
}

// Len returns the number of accounts.
func (v *View) Len() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.entries)
}

// Serial returns the serial of the zone. It grows with every epoch.
func (v *View) Serial() uint32 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.serial
}

// Merge takes what the stamp of a location listed: all its accounts, or those that changed. An entry is
// taken if its epoch is higher than the one that is here; and, of the same epoch, if the stamp is that of
// the epoch's location, or what is here came from the other one, too.
//
// The errors, which may come together: ErrEntry for entries that are left out, ErrFull for accounts that are, and
// ErrUnsaved, after which the next call writes again.
func (v *View) Merge(from geo.Location, list []Entry) error {
	v.merging.Lock()
	defer v.merging.Unlock()
	changed, err := v.news(from, list)
	if len(changed) > 0 || v.unsaved {
		err = errors.Join(err, v.save(changed))
	}
	v.publish(changed)
	return err
}

// news returns the entries of list that are taken. The caller holds merging, so that nothing else changes
// the entries.
func (v *View) news(from geo.Location, list []Entry) (changed map[geo.Account]held, err error) {
	changed = map[geo.Account]held{}
	room := entriesMax - v.Len()
	for _, e := range list {
		if bad := e.check(); bad != nil {
			err = bad
			continue
		}
		next := held{e, e.Epoch.Location == from}
		old, here := changed[e.Account]
		if !here {
			old, here = v.lookup(e.Account)
		}
		switch {
		case here && !replaces(old, next):
		case !here && room == 0:
			err = ErrFull
		default:
			if !here {
				room--
			}
			changed[e.Account] = next
		}
	}
	return changed, err
}

// replaces reports whether a record of an account takes the place of another one.
func replaces(old, next held) bool {
	switch c := next.Epoch.Compare(old.Epoch); {
	case c != 0:
		return c > 0
	case old == next:
		return false
	}
	return next.own || !old.own
}

// save writes the file, if the view has one, as it is with the changes.
func (v *View) save(changed map[geo.Account]held) error {
	if v.fs == nil {
		return nil
	}
	v.mu.RLock()
	all := maps.Clone(v.entries)
	v.mu.RUnlock()
	maps.Copy(all, changed)
	err := durable.Replace(v.fs, v.dir, fileName, encodeFile(all))
	if v.unsaved = err != nil; v.unsaved {
		return fmt.Errorf("%w: %w", ErrUnsaved, err)
	}
	return nil
}

// publish makes changes visible.
func (v *View) publish(changed map[geo.Account]held) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = true
	for name, e := range changed {
		v.serial += uint32(e.Epoch.Number - v.entries[name].Epoch.Number)
		v.entries[name] = e
		for _, w := range v.watches {
			w.add(name)
		}
	}
}

// Watch returns the accounts that change from now on, with all that are there now.
func (v *View) Watch() *Watch {
	w := &Watch{names: map[geo.Account]struct{}{}, changed: make(chan struct{}, 1)}
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.entries {
		w.add(name)
	}
	v.watches = append(v.watches, w)
	return w
}

// again adds all accounts to a watch.
func (v *View) again(w *Watch) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for name := range v.entries {
		w.add(name)
	}
}

// Watch is a set of accounts whose entries changed since they were taken. However often an entry
// changes, it is in the set once.
type Watch struct {
	mu    sync.Mutex
	names map[geo.Account]struct{} // guarded by mu
	// changed gets a value whenever the set grows.
	changed chan struct{}
}

func (w *Watch) add(name geo.Account) {
	w.mu.Lock()
	w.names[name] = struct{}{}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take returns up to max accounts by name, and removes them.
func (w *Watch) take(most int) []geo.Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []geo.Account
	for name := range w.names {
		if len(out) == most {
			break
		}
		out = append(out, name)
		delete(w.names, name)
	}
	slices.Sort(out)
	return out
}

func (w *Watch) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.names)
}
