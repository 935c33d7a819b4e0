package directory

import (
	"context"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// The changes of a redundancy, of an account whose primary is here:
//
//	GRS <──> RA-GRS          one change of the account's row, shipped like every other: at once here, at
//	                         the secondary in the order of the catalog's stream
//	GRS, RA-GRS ──> LRS      a new epoch, then the operation of the account: see operation.go
//	LRS ──> GRS, RA-GRS      a new epoch, then the bootstrap: see bootstrap.Copier.Resume
//	rebuild                  the bootstrap again, for a copy that is lost, forked or behind the outbox
//
// A change to LRS and a rebuild end a bootstrap that is under way; any other change waits for it.

// agreePause is the pause between two questions whether the secondary has a change.
const agreePause = 20 * time.Millisecond

// Update changes the redundancy of an account whose primary is this location. It returns the account and
// why the other location does not have the change yet, nil if it has. Then it follows by itself. A second
// call for the same redundancy waits for it again. Errors that change nothing: AccountNotFound;
// OperationInProgress; InvalidInput where the primary is elsewhere; ServerBusy.
//
// rate is how many bytes per second, payload included, the bootstrap of the account may copy: 0 is no bound; nil
// leaves that of a bootstrap under way, and is that of SetPace for another. InvalidInput if there is a rate and no bootstrap.
func (d *Directory) Update(ctx context.Context, name geo.Account, to catalog.Redundancy, rate *uint64) (a *catalog.Account, behind, err error) {
	return d.alter(ctx, &alter{name: name, to: to, rate: rate, otherwise: d.rate, other: d.other})
}

// Rebuild begins the copy of an account at its secondary again, from nothing (R17). What is there stays readable until
// the secondary has the command. rate, errors and results as of Update; InvalidInput for an account without a secondary.
func (d *Directory) Rebuild(ctx context.Context, name geo.Account, rate *uint64) (a *catalog.Account, behind, err error) {
	return d.alter(ctx, &alter{name: name, rebuild: true, rate: rate, otherwise: d.rate, other: d.other})
}

// SetRate changes how fast the bootstrap of an account may go that is under way. Errors as of Update.
func (d *Directory) SetRate(ctx context.Context, name geo.Account, rate uint64) (a *catalog.Account, err error) {
	cmd := &alter{name: name, keep: true, rate: &rate, other: d.other}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, err // It may be evaluated yet.
	}
	return &cmd.stored, nil
}

func (d *Directory) alter(ctx context.Context, cmd *alter) (a *catalog.Account, behind, err error) {
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, nil, err
	}
	a = &cmd.stored
	if a.Operation != nil {
		return a, d.resumeNow(ctx, a), nil
	}
	return a, d.awaitPeer(ctx, a), nil
}

// awaitPeer waits, for a while, until the other location has an account as it is here. It returns why it has not.
func (d *Directory) awaitPeer(ctx context.Context, a *catalog.Account) (behind error) {
	ctx, cancel := d.within(ctx, record.OperationWait)
	defer cancel()
	for {
		behind := d.peer.Announce(ctx, *a)
		if behind == nil || d.wait(ctx, agreePause) != nil {
			return behind
		}
	}
}

// alter changes the redundancy of an account in its row, or begins its copy again.
type alter struct {
	name geo.Account
	to   catalog.Redundancy
	// rebuild begins the copy again; to is then what the account has.
	rebuild bool
	// keep changes the rate alone; to is then what the account has, too.
	keep bool
	// rate is that of the bootstrap; nil gives none, and then it is otherwise, unless a bootstrap has one.
	rate      *uint64
	otherwise uint64
	other     geo.Location
	stored    catalog.Account
}

// Evaluate implements ranges.Command.
func (c *alter) Evaluate(tx *ranges.Tx) error {
	have, err := record.LookHere(tx, c.name)
	if err != nil {
		return err
	}
	a := have.Account
	c.stored = *a
	to := c.to
	if c.rebuild || c.keep {
		to = a.Redundancy
	}
	switch gate := tx.Gate(a.Name); {
	case c.rebuild && !to.Geo():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("account %s is %s: it has no copy", a.Name, a.Redundancy))
	case c.rate != nil && !c.copies(a, to):
		return storageerr.InvalidInput.Saying(fmt.Sprintf("no copy of account %s is made: a rate has no use", a.Name))
	case a.Redundancy == to && !c.rebuild:
		return c.pace(tx) // A second call, or a new rate.
	case a.Operation != nil && !c.rebuilds(a) && (!a.Bootstraps() || !c.rebuild && to.Geo()):
		return record.ErrOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation.Describe()))
	case gate.Role != change.RolePrimary || !gate.Open || gate.Epoch != a.GeoEpoch():
		return storageerr.ServerBusy
	}
	kind := catalog.OperationKind("")
	switch {
	case !to.Geo():
		kind = catalog.OperationLeave
	case c.rebuild || !a.Redundancy.Geo():
		kind = catalog.OperationBootstrap
	}
	c.stored.SetRedundancy(to, c.other)
	if kind != "" {
		return c.leave(tx, have, kind)
	}
	return record.StageAccount(tx, tx.Timestamp(0), &c.stored)
}

// rebuilds reports whether the copy is made again at a former primary that has diverged: that ends the failover.
func (c *alter) rebuilds(a *catalog.Account) bool {
	return c.rebuild && (a.Operation.Diverged || a.Operation.Rewinding)
}

// Reclaims implements ranges.Reclaimer: a change to LRS, and a rebuild, begin with what frees room, and needs almost
// none. So do the other commands of operations.
func (c *alter) Reclaims() {}

// copies reports whether an account has a bootstrap once it is changed: a rate is of that.
func (c *alter) copies(a *catalog.Account, to catalog.Redundancy) bool {
	switch {
	case c.rebuild:
		return true
	case c.keep:
		return a.Bootstraps()
	}
	return to.Geo() && (a.Bootstraps() || !a.Redundancy.Geo())
}

// pace changes the rate of the bootstrap that is under way.
func (c *alter) pace(tx *ranges.Tx) error {
	if c.rate == nil || c.stored.Operation.Rate == *c.rate {
		return nil
	}
	op := *c.stored.Operation // The record that was looked up stays as it is.
	op.Rate = *c.rate
	c.stored.Operation = &op
	return record.StageAccount(tx, tx.Timestamp(0), &c.stored)
}

// rateOf is the rate of a bootstrap that begins; was is the operation that it ends, nil for none.
func (c *alter) rateOf(was *catalog.Operation) uint64 {
	switch {
	case c.rate != nil:
		return *c.rate
	case was != nil && was.Kind == catalog.OperationBootstrap:
		return was.Rate
	}
	return c.otherwise
}

// leave ends the streams of the account in the catalog, with a new epoch (R10, R19), for an operation.
//
// The row, which has the new epoch, is the last record of the account's stream of the catalog, if it has
// one. As long as the secondary has not applied it, Last Sync Time of every service is before it there (R13),
// and all later commits are after it, so that none counts as copied; once it has, the account has no Last Sync
// Time there. That needs no call, of which the link may let none through.
//
// Until the other location knows of the epoch it may become the primary, out of the copy that it has (R20), in an epoch
// that is not above this one, and win. So what is written here meanwhile needs confirmed epochs, as in the last epoch that
// both know of (change.Gate.Agreed, R21).
func (c *alter) leave(tx *ranges.Tx, have record.Known, kind catalog.OperationKind) error {
	at := tx.Timestamp(0)
	c.stored.Epoch = have.Seen.Number + 1
	begun := &catalog.Operation{Kind: kind, After: at, Agreed: have.Account.Agreed()}
	if have.Account.Ships() {
		begun.Agreed = have.Account.Epoch
	}
	if kind == catalog.OperationBootstrap {
		begun.Partial, begun.Rate = c.stored.Partial(), c.rateOf(c.stored.Operation)
	}
	c.stored.Operation = begun
	if err := record.StageAccount(tx, at, &c.stored); err != nil {
		return err
	}
	tx.SetGate(c.name, record.PrimaryGate(&c.stored))
	op, err := catalog.SeenOp(c.stored.GeoEpoch()) // Not shipped: the gate has no numbers.
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.name)
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
}
