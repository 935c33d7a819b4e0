package directory

import (
	"context"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// SetWhenLate sets what becomes of the writes of an account whose primary is this location while its changes are late.
// The policy is in the account's row, which is shipped. Errors and results as of Update; InvalidInput for an account
// without a secondary.
func (d *Directory) SetWhenLate(ctx context.Context, name geo.Account, to catalog.WhenLate) (a *catalog.Account, behind, err error) {
	cmd := &setWhenLate{name: name, to: to}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, nil, err
	}
	return &cmd.stored, d.awaitPeer(ctx, &cmd.stored), nil
}

// setWhenLate changes the policy in the account's row.
type setWhenLate struct {
	name   geo.Account
	to     catalog.WhenLate
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *setWhenLate) Evaluate(tx *ranges.Tx) error {
	have, err := record.LookHere(tx, c.name)
	if err != nil {
		return err
	}
	a := have.Account
	c.stored = *a
	switch gate := tx.Gate(a.Name); {
	case !a.Redundancy.Geo():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("account %s is %s: it has no copy that could be late", a.Name, a.Redundancy))
	case a.WhenLate == c.to:
		return nil
	case a.Operation != nil && !a.Bootstraps(): // What a bootstrap has numbered may be what is late.
		return record.ErrOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation.Describe()))
	case gate.Role != change.RolePrimary || !gate.Open || gate.Epoch != a.GeoEpoch():
		return storageerr.ServerBusy
	}
	c.stored.WhenLate = c.to
	return record.StageAccount(tx, tx.Timestamp(0), &c.stored)
}
