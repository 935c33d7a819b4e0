package catalog

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// EachAccount calls f with the stored form of each account by name, complete ones or not, until f fails. The bytes are
// valid until f returns. It goes from one account to the next: containers, of which an account may have any number,
// are not read.
func EachAccount(ctx context.Context, r kv.Reader, f func(name geo.Account, stored []byte) error) error {
	lower := keys.AppendService(nil, geo.Catalog)
	it, err := r.Scan(lower, keys.PrefixEnd(lower))
	if err != nil {
		return err
	}
	for ok := it.Next(); ok; {
		p, row, err := keys.ParsePartition(it.Key())
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && p == AccountPartition(p.Account) && len(row) == 0 { // The first row of its account, if it has one.
			err = f(p.Account, it.Value())
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		ok = it.SeekGE(keys.PrefixEnd(keys.AppendAccount(nil, geo.Catalog, p.Account)))
	}
	return it.Close()
}
