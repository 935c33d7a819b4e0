package admin

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
)

// UpdateAccount implements api/admin.Cluster. The primary of the account changes it.
func (b *Backend) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	a, err := known(ctx, b, func(ctx context.Context, l Location) (wire.Account, error) { return l.Account(ctx, name) })
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	l, err := b.find(a.Primary)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out, err := l.UpdateAccount(ctx, name, u)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out.AccountInfo = b.info(out.Account)
	return out, nil
}

// UpdateAccount implements Location. The catalog's leader must be in this process.
func (l *Local) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	a, behind, err := l.Location.UpdateAccount(ctx, name, u)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out := wire.AccountUpdated{AccountInfo: wire.AccountInfo{Account: location.DescribeAccount(a)}}
	if behind != nil {
		out.Behind = behind.Error()
	}
	return out, nil
}

// UpdateAccount implements Location.
func (r *Remote) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.AccountUpdated, error) {
		return c.UpdateAccount(ctx, name, u)
	})
}
