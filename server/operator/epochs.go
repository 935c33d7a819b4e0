package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// OverrideEpochs implements api/admin.Cluster.
func (b *Backend) OverrideEpochs(ctx context.Context, l geo.Location) (wire.Epochs, error) {
	return ask(b, l, func(l Location) (wire.Epochs, error) { return l.OverrideEpochs(ctx) })
}

// OverrideEpochs implements Location: in this process.
func (l *Local) OverrideEpochs(ctx context.Context) (wire.Epochs, error) {
	return l.Location.OverrideEpochs(ctx)
}

// OverrideEpochs implements Location: at the first node that can be reached, which passes it on.
func (r *Remote) OverrideEpochs(ctx context.Context) (wire.Epochs, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Epochs, error) {
		return c.OverrideEpochs(ctx, r.Location)
	})
}
