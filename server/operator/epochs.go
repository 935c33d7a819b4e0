package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// OverrideEpochs implements api/admin.Cluster.
func (b *Backend) OverrideEpochs(ctx context.Context, l geo.Location) (wire.Epochs, error) {
	return at(ctx, b, &overrideEpochs, wire.At{Location: l}, wire.None{})
}
