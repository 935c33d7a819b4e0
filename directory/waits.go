package directory

import (
	"maps"
	"sync"

	"antipode/geo"
	"antipode/services/catalog"
)

// waits are the operations that could not go on when Resume tried last, and why. The zero value has none. Methods may
// be called concurrently.
type waits struct {
	mu sync.Mutex
	of map[geo.Account]wait // guarded by mu
}

// wait is why the operation of an account waits, in an epoch of it.
type wait struct {
	epoch geo.Epoch
	why   string
}

// Waits returns why the operation of an account could not go on when Resume tried last; empty if it went on, and where
// Resume has not tried yet.
func (d *Directory) Waits(a *catalog.Account) string {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	if w := d.waits.of[a.Name]; w.epoch == a.GeoEpoch() {
		return w.why
	}
	return ""
}

// set takes the outcome of a try, nil if the operation went on.
func (w *waits) set(a *catalog.Account, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.of, a.Name)
		return
	}
	if w.of == nil {
		w.of = map[geo.Account]wait{}
	}
	w.of[a.Name] = wait{a.GeoEpoch(), err.Error()}
}

// keep forgets the accounts that are in neither.
func (w *waits) keep(operations, promoted map[geo.Account]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.of, func(name geo.Account, _ wait) bool { return !operations[name] && !promoted[name] })
}
