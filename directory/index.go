package directory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// index is what was read of all accounts of a catalog. It walks over all of them once, and then reads those alone that have
// changed since: each step of the failover of a location looks at all accounts.
type index struct {
	// mu is never held while a call waits for the catalog.
	mu sync.Mutex
	// version is that of the data which it has at least, 0 for none.
	version kv.Version
	// names are those of rows, in their sequence.
	names []geo.Account
	rows  map[geo.Account]*indexed
	// all are those of rows by name, nil until they are listed after a change. It is shared and not to be changed.
	all []*indexed
}

// indexed is what a catalog has of an account. It is shared and not to be changed.
type indexed struct {
	account *catalog.Account
	// promotion is nil for none.
	promotion *catalog.Promotion
}

func newIndex() *index { return &index{rows: map[geo.Account]*indexed{}} }

func (x *index) since() kv.Version {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version
}

// eachTries is how often a call reads the catalog, if others change the index meanwhile, until it reads all of it.
const eachTries = 4

// each calls f with all accounts of the catalog by name, complete ones or not, and before that first, perhaps more than once,
// with the state that they are of, or a later one: what is committed while the call begins may be missing in them alone.
func (d *Directory) each(ctx context.Context, first func(kv.Snapshot) error, f func(*indexed)) error {
	all, err := d.listed(ctx, first)
	if err != nil {
		return err
	}
	for _, i := range all {
		f(i)
	}
	return nil
}

// listed returns what each calls f with: the same slice as before where no account has changed. It is not to be changed.
func (d *Directory) listed(ctx context.Context, first func(kv.Snapshot) error) (all []*indexed, err error) {
	for try, current := 1, false; err == nil && !current; try++ {
		all, current, err = d.read(ctx, first, try == eachTries)
	}
	return all, err
}

// read reads the catalog as it is into the index; current is false if another call has done so meanwhile, of a state that may
// be an earlier or a later one, unless all is to be read.
func (d *Directory) read(ctx context.Context, first func(kv.Snapshot) error, whole bool) (all []*indexed, current bool, err error) {
	since := d.index.since()
	var snap kv.Snapshot
	var now kv.Version
	var changed []string
	var known bool
	err = d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(s ranges.State) (err error) {
		if snap != nil { // The lease had ended: this state is a later one.
			err = snap.Close()
		}
		now, changed, known = s.Changed(since)
		snap = s.Snapshot() // Afterwards: it has what has changed.
		return err
	})
	if snap == nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if err == nil {
		err = first(snap)
	}
	if err != nil {
		return nil, false, err
	}
	x := d.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.version != since && !whole {
		return nil, false, nil
	}
	x.version = 0 // Until all is read.
	if err := x.update(ctx, snap, changed, known && !whole); err != nil {
		return nil, false, err
	}
	x.version = now
	if x.all == nil {
		x.all = make([]*indexed, len(x.names))
		for i, name := range x.names {
			x.all[i] = x.rows[name]
		}
	}
	return x.all, true, nil
}

// update reads what has changed, or all if that is not known.
func (x *index) update(ctx context.Context, snap kv.Snapshot, changed []string, known bool) error {
	if !known {
		x.names, x.rows, x.all = nil, map[geo.Account]*indexed{}, nil
		return catalog.EachAccount(ctx, snap, func(name geo.Account, _ []byte) error { return x.read(snap, name) })
	}
	seen := map[geo.Account]bool{}
	for _, c := range changed {
		p, _, err := keys.ParsePartition([]byte(c))
		if err != nil {
			return err
		}
		if p != catalog.AccountPartition(p.Account) || seen[p.Account] {
			continue
		}
		seen[p.Account] = true
		if err := x.read(snap, p.Account); err != nil {
			return err
		}
	}
	return nil
}

// read reads the rows of an account.
func (x *index) read(snap kv.Snapshot, name geo.Account) error {
	x.all = nil
	a, err := catalog.GetAccount(snap, name)
	if err != nil && !errors.Is(err, storageerr.AccountNotFound) {
		return err
	}
	at, have := slices.BinarySearch(x.names, name)
	if err != nil { // There is no such account.
		if have {
			x.names = slices.Delete(x.names, at, at+1)
			delete(x.rows, name)
		}
		return nil
	}
	p, err := catalog.GetPromotion(snap, name)
	if err != nil {
		return err
	}
	if !have {
		x.names = slices.Insert(x.names, at, name)
	}
	x.rows[name] = &indexed{a, p}
	return nil
}
