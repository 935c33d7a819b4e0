package record

import (
	"maps"
	"sync"

	"antipode/geo"
	"antipode/services/catalog"
)

// Waits are the operations that could not go on when Resume tried last, and why. The zero value has none. Methods may
// be called concurrently.
type Waits struct {
	mu sync.Mutex
	of map[geo.Account]wait // guarded by mu
}

// wait is why the operation of an account waits, in an epoch of it.
type wait struct {
	epoch geo.Epoch
	why   string
}

// Why returns why the operation of an account could not go on when it was tried last; empty if it went on, and where it
// was not tried yet.
func (w *Waits) Why(a *catalog.Account) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w := w.of[a.Name]; w.epoch == a.GeoEpoch() {
		return w.why
	}
	return ""
}

// Set takes the outcome of a try, nil if the operation went on.
func (w *Waits) Set(a *catalog.Account, err error) {
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

// Keep forgets the accounts that are in neither.
func (w *Waits) Keep(operations, promoted map[geo.Account]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.of, func(name geo.Account, _ wait) bool { return !operations[name] && !promoted[name] })
}
