package directory

import (
	"context"
	"errors"
	"slices"

	"antipode/directory/batch"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// EndLocation has the failover of a location end: no account's begins any more, and those under way end without effect, but
// for accounts that were taken. Resume goes on. InvalidInput if none is under way here.
func (d *Directory) EndLocation(ctx context.Context) (*catalog.LocationMove, error) {
	for {
		have, err := d.LocationMove(ctx)
		if err != nil {
			return nil, err
		}
		if have == nil || have.Phase != catalog.LocationMoving {
			return nil, storageerr.InvalidInput.Saying("no failover of a location is under way here that could be ended")
		}
		to := *have
		to.Phase, to.Reason = catalog.LocationEnding, "an operator ended it"
		if done, err := d.locationTo(ctx, have, to); err != nil || done {
			return &to, err
		}
	}
}

// endAll ends failovers of accounts, unless they end already.
func (d *Directory) endAll(ctx context.Context, m *catalog.LocationMove, under []*catalog.Account) error {
	errs := make([]error, len(under))
	batch.Run(ctx, len(under), func(ctx context.Context, i int) {
		a := under[i]
		switch {
		case m.Unplanned:
			_, errs[i] = d.promoter.EndPromotion(ctx, a.Name)
		case a.Operation.Move.Reason == "":
			_, errs[i] = d.mover.EndMove(ctx, a.Name)
			if row, ok := storageerr.Of(errs[i]); ok && row.Code == storageerr.InvalidInput.Code {
				errs[i] = nil // It has moved, or ends.
			}
		}
	})
	return errors.Join(errs...)
}

// endable are the moving ones that the end of a location's failover ends: not those that an operator has let go on without
// the witness, one by one.
func (w *work) endable(m *catalog.LocationMove) []*catalog.Account {
	spared := map[geo.Account]bool{}
	for _, p := range w.promotions {
		spared[p.Account.Name] = m.Unplanned && !m.WithoutWitness && p.Promotion.Unwitnessed
	}
	return slices.DeleteFunc(w.moving(m), func(a *catalog.Account) bool { return spared[a.Name] })
}
