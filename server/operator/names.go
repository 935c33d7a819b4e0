package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Names implements api/admin.Cluster.
func (b *Backend) Names(ctx context.Context, name geo.Location, q wire.NamesQuery) (wire.Names, error) {
	return at(ctx, b, &listNames, wire.At{Location: name}, q)
}
