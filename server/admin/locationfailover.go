package admin

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// LocationFailover implements api/admin.Cluster.
func (b *Backend) LocationFailover(ctx context.Context, l geo.Location) (wire.LocationFailover, error) {
	return ask(b, l, func(l Location) (wire.LocationFailover, error) { return l.LocationFailover(ctx) })
}

// FailLocationOver implements api/admin.Cluster.
func (b *Backend) FailLocationOver(ctx context.Context, l geo.Location, f wire.Failover) (wire.LocationFailover, error) {
	return ask(b, l, func(l Location) (wire.LocationFailover, error) { return l.FailLocationOver(ctx, f) })
}

// LocationFailover implements Location.
func (l *Local) LocationFailover(ctx context.Context) (wire.LocationFailover, error) {
	return l.Location.LocationFailover(ctx)
}

// FailLocationOver implements Location.
func (l *Local) FailLocationOver(ctx context.Context, f wire.Failover) (wire.LocationFailover, error) {
	return l.Location.FailLocationOver(ctx, f)
}

// LocationFailover implements Location.
func (r *Remote) LocationFailover(ctx context.Context) (wire.LocationFailover, error) {
	return read(ctx, r, func(ctx context.Context, c *wire.Client) (wire.LocationFailover, error) {
		return c.LocationFailover(ctx, r.Location)
	})
}

// FailLocationOver implements Location.
func (r *Remote) FailLocationOver(ctx context.Context, f wire.Failover) (wire.LocationFailover, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.LocationFailover, error) {
		return c.FailLocationOver(ctx, r.Location, f)
	})
}
