package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	wire "antipode/client/admin"
)

// Finalize raises both locations to the highest feature level, without which they make no leases, snapshots, append
// blobs and copies in steps.
func (r *Rig) Finalize(ctx context.Context) error {
	for {
		_, err := r.opts.Admin().Finalize(ctx, wire.Finalize{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("finalize: %w", errors.Join(err, ctx.Err()))
		case <-time.After(poll):
		}
	}
}
