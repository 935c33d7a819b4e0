package directory

import (
	"context"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// The changes of a redundancy, of an account whose primary is here:
//
//	GRS <──> RA-GRS          one change of the account's row, shipped like every other: at once here, at
//	                         the secondary in the order of the catalog's stream
//	GRS, RA-GRS ──> LRS      leave, then the operation of the account: see operation.go
//	LRS ──> GRS, RA-GRS      refused: it needs the bootstrap, which is not built

// errOperation is what another operation of an account is refused with while one is under way.
var errOperation = storageerr.OperationInProgress

// agreePause is the pause between two questions whether the secondary has a change.
const agreePause = 20 * time.Millisecond

// Update changes the redundancy of an account whose primary is this location. It returns the account and
// why the other location does not have the change yet, nil if it has. Then it follows by itself. A second
// call for the same redundancy waits for it again. Errors that change nothing: AccountNotFound;
// OperationInProgress; NotImplemented for a change that needs the bootstrap; InvalidInput where the
// primary is elsewhere; ServerBusy.
func (d *Directory) Update(ctx context.Context, name geo.Account, to catalog.Redundancy) (a *catalog.Account, behind, err error) {
	cmd := &alter{name: name, to: to, other: d.other}
	if err := d.submit(ctx, cmd); err != nil {
		return nil, nil, err
	}
	a = &cmd.stored
	if a.Operation != nil {
		return a, d.resumeNow(ctx, a), nil
	}
	ctx, cancel := context.WithTimeout(ctx, operationWait)
	defer cancel()
	for {
		behind := d.peer.Announce(ctx, *a)
		if behind == nil || clock.Wait(ctx, agreePause) != nil {
			return a, behind, nil
		}
	}
}

// alter changes the redundancy of an account in its row.
type alter struct {
	name   geo.Account
	to     catalog.Redundancy
	other  geo.Location
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *alter) Evaluate(tx *ranges.Tx) error {
	have, err := look(tx, c.name)
	if err != nil {
		return err
	}
	a := have.account
	if a == nil || !a.Active {
		return storageerr.AccountNotFound
	}
	if c.stored = *a; a.Primary != tx.Location() {
		return storageerr.InvalidInput.Saying(fmt.Sprintf("the primary of account %s is %s: its redundancy is changed there", a.Name, a.Primary))
	}
	switch gate := tx.Gate(a.Name); {
	case a.Redundancy == c.to:
		return nil // A second call.
	case a.Operation != nil:
		return errOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation.Describe()))
	case !a.Redundancy.Geo():
		return storageerr.NotImplemented.Saying(fmt.Sprintf(
			"account %s is %s: %s needs a copy of its data at %s, by span images (bootstrap), which are not built", a.Name, a.Redundancy, c.to, c.other))
	case gate.Role != change.RolePrimary || !gate.Open || gate.Epoch != a.GeoEpoch():
		return storageerr.ServerBusy
	}
	a.SetRedundancy(c.to, c.other)
	if c.stored = *a; !c.to.Geo() {
		return c.leave(tx, have.seen)
	}
	return stageAccount(tx, tx.Timestamp(0), &c.stored)
}

// leave ends the streams of the account in the catalog, with a new epoch (R10, R19).
//
// The row, which has the new epoch, is the last record of the account's stream of the catalog. As long as
// the secondary has not applied it, Last Sync Time of every service is before it there (R13), so that no
// later write counts as copied; once it has, the account is not readable there. That needs no call, of
// which the link may let none through.
func (c *alter) leave(tx *ranges.Tx, seen geo.Epoch) error {
	c.stored.Epoch = seen.Number + 1
	c.stored.Operation = &catalog.Operation{Kind: catalog.OperationLeave}
	if err := stageAccount(tx, tx.Timestamp(0), &c.stored); err != nil {
		return err
	}
	tx.SetGate(c.name, primaryGate(&c.stored))
	op, err := catalog.SeenOp(c.stored.GeoEpoch()) // Not shipped: the gate has no numbers.
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.name)
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
}
