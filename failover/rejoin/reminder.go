package rejoin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/services/catalog"
)

// Remind has the other location follow those accounts, of the ones that Higher has found, of which this location is the
// primary and whose failover has ended: the other location knew of it, and has lost that. Its catalog was recovered with
// loss, or its disks are older ones (R4). Nothing else would ever call it, and no rebuild could begin there, since it
// takes itself for the primary.
//
// It follows as one that has diverged, whatever it has: it serves nothing of the account until an operator has the copy made
// again. A location that only was late, and follows by now, notices nothing.
func (j *Rejoiner) Remind(ctx context.Context, above map[geo.Account]geo.Epoch) (err error) {
	for _, name := range slices.Sorted(maps.Keys(above)) {
		a, failed := j.accounts.Account(ctx, name)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("account %s: %w", name, failed))
			continue
		}
		ended := a.Operation == nil || a.Bootstraps() && !a.Copying()
		if a.Primary != j.stamp.Location() || a.GeoEpoch() != above[name] || !a.Redundancy.Geo() || a.LastFailover == 0 || !ended {
			continue // An operation calls it itself, but for a rebuild, which it refuses.
		}
		lost := *a
		lost.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: a.LastFailover, Unplanned: true}
		if failed := j.peer.Adopt(ctx, Taken{Account: lost}); failed != nil && !errors.Is(failed, ErrDiverged) {
			err = errors.Join(err, fmt.Errorf("account %s: %w", name, failed))
		}
	}
	return err
}
