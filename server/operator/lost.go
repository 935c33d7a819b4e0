package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Lost implements api/admin.Lost.
func (b *Backend) Lost(ctx context.Context, l geo.Location, q wire.LostQuery) (wire.Lost, error) {
	return ask(b, l, func(l Location) (wire.Lost, error) { return l.Lost(ctx, q) })
}

// DropLost implements api/admin.Lost.
func (b *Backend) DropLost(ctx context.Context, l geo.Location, q wire.DropLost) (wire.LostDropped, error) {
	return ask(b, l, func(l Location) (wire.LostDropped, error) { return l.DropLost(ctx, q) })
}

// Lost implements Location.
func (l *Local) Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error) {
	return l.Location.Lost(ctx, q)
}

// DropLost implements Location.
func (l *Local) DropLost(ctx context.Context, q wire.DropLost) (wire.LostDropped, error) {
	return l.Location.DropLost(ctx, q)
}

// Lost implements Location.
func (r *Remote) Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Lost, error) { return c.Lost(ctx, r.Location, q) })
}

// DropLost implements Location.
func (r *Remote) DropLost(ctx context.Context, q wire.DropLost) (wire.LostDropped, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.LostDropped, error) {
		return c.DropLost(ctx, r.Location, q)
	})
}
