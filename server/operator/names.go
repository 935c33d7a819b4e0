package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// Names implements api/admin.Cluster.
func (b *Backend) Names(ctx context.Context, name geo.Location, q wire.NamesQuery) (wire.Names, error) {
	l, err := b.find(name)
	if err != nil {
		return wire.Names{}, storageerr.InvalidInput.Saying(err.Error())
	}
	return l.Names(ctx, q)
}

// Names implements Location.
func (l *Local) Names(ctx context.Context, q wire.NamesQuery) (wire.Names, error) {
	return l.Location.Names(ctx, q.Since, q.After)
}

// Names implements Location.
func (r *Remote) Names(ctx context.Context, q wire.NamesQuery) (wire.Names, error) {
	return read(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Names, error) { return c.Names(ctx, r.Location, q) })
}
