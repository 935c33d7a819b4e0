package catalog

import (
	"bytes"
	"context"
	"errors"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Work of one row of a listing, in the unit of services.Budget: a row costs rowWork to
// read and decode, and one more for each rowWorkBytes of it.
const (
	rowWork      = 32
	rowWorkBytes = 8
)

// Listing selects the containers of an account that a page shows. Names of tables are compared
// without case.
type Listing struct {
	Service geo.Service
	Account geo.Account
	// Prefix is what names begin with; empty for all.
	Prefix string
	// Low is the first name, High the first one above the listing when Bounded.
	Low, High string
	Bounded   bool
	// From is the continuation: the name at which this page begins.
	From string
}

// Page walks the living containers of a listing in the order of their keys. It offers each to
// take until that refuses one, or fails, or the budget is spent. It returns the name at which the
// next page begins, in the case of its key: the refused one, or the first that was not examined;
// "" if all were. take may keep the containers.
//
// Invariant: unless take refuses the first container, next is above From, so that paging ends: a
// page examines at least one row.
func Page(ctx context.Context, r kv.Reader, l Listing, budget *services.Budget, take func(*Container) (taken bool, err error)) (next string, err error) {
	lower, upper := l.span()
	if bytes.Compare(lower, upper) >= 0 {
		return "", nil
	}
	it, err := r.Scan(lower, upper)
	if err != nil {
		return "", err
	}
	more := true
	for it.Next() {
		c, err := ParseContainer(it.Value())
		if err != nil {
			return "", errors.Join(err, it.Close())
		}
		if c.Deleted == 0 && more {
			if more, err = take(c); err != nil {
				return "", errors.Join(err, it.Close())
			}
		}
		if !more {
			return keyName(l.Service, c.Name), it.Close()
		}
		if more, err = budget.Spend(ctx, rowWork+len(it.Value())/rowWorkBytes); err != nil {
			return "", errors.Join(err, it.Close())
		}
	}
	return "", it.Close()
}

// span returns the span of keys to examine.
func (l Listing) span() (lower, upper []byte) {
	account := keys.AppendContainer(nil, geo.Catalog, l.Account, "", keys.Generation{})
	// at returns the first key that a name at or above this one can have.
	at := func(name string) []byte {
		b := keys.AppendString(bytes.Clone(account), kindOf(l.Service)+keyName(l.Service, name))
		return b[:len(b)-2] // Without its end, so that what begins with the name is above it.
	}
	lower, upper = at(l.Prefix), keys.PrefixEnd(at(l.Prefix))
	if first := keys.PrefixEnd(propertiesPartition(l.Service, l.Account).Append(nil)); bytes.Compare(first, lower) > 0 {
		lower = first // Behind the properties of the service.
	}
	for _, name := range [...]string{l.Low, l.From} {
		if low := at(name); bytes.Compare(low, lower) > 0 {
			lower = low
		}
	}
	if l.Bounded {
		if high := at(l.High); bytes.Compare(high, upper) < 0 {
			upper = high
		}
	}
	return lower, upper
}
