package directory

import (
	"context"
	"errors"
	"maps"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// Own returns the epochs of the accounts that have a copy and whose primary is this location, to ask the other one with. It
// names those, too, that the other location has taken from here while that goes on, in an epoch before that one: the
// record says so before all ranges do, and one that does not yet would take writes as soon as the epochs are confirmed.
func (d *Directory) Own(ctx context.Context) (map[geo.Account]geo.Epoch, error) {
	list, err := d.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	own := map[geo.Account]geo.Epoch{}
	for _, a := range list {
		switch {
		case a.Primary == d.stamp.Location() && a.Agreed() != 0:
			own[a.Name] = geo.Epoch{Number: a.Agreed(), Location: a.Primary}
		case !a.Redundancy.Geo():
		case a.Primary == d.stamp.Location():
			own[a.Name] = a.GeoEpoch()
		case a.Operation != nil && a.Operation.Kind == catalog.OperationTaken:
			own[a.Name] = geo.Epoch{Number: a.Epoch - 1, Location: d.stamp.Location()}
		}
	}
	return own, nil
}

// Higher returns those of the accounts, whose primary is the other location under the given epochs, that have a higher
// one in this location's catalog (R21). The row of an account decides, since an epoch begins with its commit (R19): one
// that was only seen may be one that is refused for ever. Where the account is gone, the highest epoch seen decides.
func (d *Directory) Higher(ctx context.Context, of map[geo.Account]geo.Epoch) (map[geo.Account]geo.Epoch, error) {
	above := map[geo.Account]geo.Epoch{}
	return above, d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(s ranges.State) error {
		clear(above)
		for name, asked := range of {
			have, err := epochHere(s, name)
			if err != nil {
				return err
			}
			if have.Compare(asked) > 0 {
				above[name] = have
			}
		}
		return nil
	})
}

// Passing leaves out what the other location has answered of epochs that this one has begun itself: it was asked with the last
// ones that both are known to know of, and knows of the present ones by now.
func (d *Directory) Passing(ctx context.Context, above map[geo.Account]geo.Epoch) map[geo.Account]geo.Epoch {
	out := maps.Clone(above)
	maps.DeleteFunc(out, func(name geo.Account, e geo.Epoch) bool {
		if e.Location != d.stamp.Location() {
			return false
		}
		a, err := d.Account(ctx, name) // After the answer.
		return err == nil && a.Primary == e.Location && !record.PrimaryGate(a).PassedBy(e)
	})
	return out
}

// epochHere is the epoch that this location's catalog has of an account.
func epochHere(s ranges.State, name geo.Account) (geo.Epoch, error) {
	a, err := catalog.GetAccount(s, name)
	if errors.Is(err, storageerr.AccountNotFound) {
		return catalog.SeenEpoch(s, name)
	}
	if err != nil || !a.Active {
		return geo.Epoch{}, err
	}
	return a.GeoEpoch(), nil
}
