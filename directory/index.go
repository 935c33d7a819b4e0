package directory

import (
	"context"
	"errors"
	"slices"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// index is what was read of all accounts of a catalog. It walks over all of them once, and then reads those alone that have
// changed since: each step of the failover of a location looks at all accounts. Calls use it in turn.
type index struct {
	// turn has one element, which the call takes that uses the fields below: it may wait for the catalog.
	turn chan struct{}
	// version is that of the data which it has at least, 0 for none.
	version kv.Version
	// names are those of rows, in their sequence.
	names []geo.Account
	rows  map[geo.Account]*indexed
}

// indexed is what a catalog has of an account. It is shared and not to be changed.
type indexed struct {
	account *catalog.Account
	// promotion is nil for none.
	promotion *catalog.Promotion
}

func newIndex() *index {
	x := &index{turn: make(chan struct{}, 1), rows: map[geo.Account]*indexed{}}
	x.turn <- struct{}{}
	return x
}

// each calls f with all accounts of the catalog by name, complete ones or not, and before that with the state that they are
// of, or of which they are newer.
func (d *Directory) each(ctx context.Context, first func(kv.Snapshot) error, f func(*indexed)) (err error) {
	x := d.index
	select {
	case <-x.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { x.turn <- struct{}{} }()
	var snap kv.Snapshot
	var now kv.Version
	var changed []string
	var known bool
	err = d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(s ranges.State) (err error) {
		if snap != nil { // The lease had ended: this state is a later one.
			err = snap.Close()
		}
		now, changed, known = s.Changed(x.version)
		snap = s.Snapshot() // Afterwards: it has what has changed.
		return err
	})
	if snap == nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if err == nil {
		err = first(snap)
	}
	if err == nil {
		err = x.update(ctx, snap, changed, known)
	}
	if err != nil {
		x.version = 0 // Rows may be read of which it is not known.
		return err
	}
	x.version = now
	for _, name := range x.names {
		f(x.rows[name])
	}
	return nil
}

// update reads what has changed, or all if that is not known.
func (x *index) update(ctx context.Context, snap kv.Snapshot, changed []string, known bool) error {
	if !known {
		x.names, x.rows = nil, map[geo.Account]*indexed{}
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
