package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Lost implements api/admin.Lost.
func (b *Backend) Lost(ctx context.Context, l geo.Location, q wire.LostQuery) (wire.Lost, error) {
	return at(ctx, b, &listLost, wire.At{Location: l}, q)
}

// DropLost implements api/admin.Lost.
func (b *Backend) DropLost(ctx context.Context, l geo.Location, q wire.DropLost) (wire.LostDropped, error) {
	return at(ctx, b, &dropLost, wire.At{Location: l}, q)
}
