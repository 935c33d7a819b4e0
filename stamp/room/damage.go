package room

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/state"
)

// Damage is which stores of a node are damaged. The zero value is none. Its methods may be called concurrently.
type Damage struct {
	mu sync.Mutex
	// reasons are by the folders of the stores.
	reasons map[string]error
}

// Add records that a store is damaged; it returns false if that was known.
func (d *Damage) Add(store string, reason error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.reasons[store]; known {
		return false
	}
	if d.reasons == nil {
		d.reasons = map[string]error{}
	}
	d.reasons[store] = reason
	return true
}

// Err is why any store is damaged; nil if none is.
func (d *Damage) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(slices.Collect(maps.Values(d.reasons))...)
}

// Mark marks the folders of the damaged stores, durably: the next open sets them aside.
func (d *Damage) Mark(fs vfs.FS, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for store, reason := range d.reasons {
		errs = append(errs, state.MarkDamaged(fs, fs.PathJoin(dir, store), reason))
	}
	return errors.Join(errs...)
}
