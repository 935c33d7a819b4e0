package planned

import (
	"context"
	"errors"

	"antipode/directory/record"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// The secondary of an account becomes its primary (R19), there:
//
//	all ranges have applied the streams up to their ends
//	  ──take, in the catalog: the record of a later epoch, and its gate. This is the one commit point──>
//	taken ──the gates of the other ranges──> ──Adopt: the former primary is the secondary, in all its ranges──>
//	no operation
//
// A refusal raises the highest epoch that was seen for the name to the one that was offered. No epoch is taken that is not
// above that, so the offer has no effect any more, however late it comes, or comes again.

// Offer is an account that its primary offers to its secondary.
type Offer struct {
	// Account is its record at the primary.
	Account catalog.Account
	// Ends are where the streams of its epoch end, in which nothing follows.
	Ends heads
}

// Offer implements Peer at the secondary.
func (mv *Mover) Offer(ctx context.Context, o Offer) (*catalog.Account, error) {
	cmd := &take{of: o}
	now, err := mv.accounts.Account(ctx, o.Account.Name)
	if err != nil {
		return nil, err
	}
	if now.GeoEpoch().Compare(o.Account.GeoEpoch()) <= 0 { // Else a second call, or a late one: the command finds which.
		if err := mv.reach(ctx, o.Account.Name, o.Account.GeoEpoch(), o.Ends); errors.Is(err, errBehind) {
			return nil, storageerr.ServerBusy.Saying(err.Error())
		} else if err != nil {
			return nil, err
		}
	}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	if cmd.done {
		mv.moved(record.MoveTaken, &cmd.taken, "")
	}
	if op := cmd.taken.Operation; op != nil && op.Kind == catalog.OperationTaken { // Else a late call.
		_ = mv.rejoin.OpenGates(ctx, cmd.taken) // Resume follows. Clients wait for it, and for nothing else.
	}
	return &cmd.taken, nil
}

// take makes this location the primary of an account that is offered to it.
type take struct {
	of    Offer
	taken catalog.Account
	done  bool
}

// Evaluate implements ranges.Command.
func (c *take) Evaluate(tx *ranges.Tx) error {
	c.done = false
	have, err := record.Look(tx, c.of.Account.Name)
	if err != nil {
		return err
	}
	if err := have.Replaceable(); err != nil {
		return err
	}
	a, want := have.Account, claimed(&c.of.Account)
	switch {
	case a == nil || !a.Active:
		return storageerr.AccountNotFound
	case a.GeoEpoch() == want:
		c.taken = *a // A second call.
		return nil
	case have.Seen.Compare(want) >= 0:
		return &record.PassedError{Seen: have.Seen}
	case a.GeoEpoch() != c.of.Account.GeoEpoch() || !c.of.Ends.of(tx.Range()).applied(tx, a.Name, a.GeoEpoch()):
		return storageerr.ServerBusy.Saying(errBehind.Error())
	}
	at := tx.Timestamp(0)
	c.taken = *a
	c.taken.Primary, c.taken.Secondary = want.Location, a.Primary
	c.taken.Epoch, c.taken.Turn = want.Number, 0
	c.taken.FailOver(at, tx.Now())
	c.taken.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: at}
	seen, err := catalog.SeenOp(want)
	if err != nil {
		return err
	}
	tx.SetGate(a.Name, record.PrimaryGate(&c.taken))
	c.done = true
	return record.StageAccount(tx, at, &c.taken, seen)
}

// Refuse implements Peer at the secondary.
func (mv *Mover) Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	cmd := &refuse{of: a}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.taken, nil
}

// refuse commits that an account is not taken in the epoch in which it was offered, unless this location has become its
// primary.
type refuse struct {
	of catalog.Account
	// taken is the account if this location is its primary, in that epoch or a later one.
	taken *catalog.Account
}

// Evaluate implements ranges.Command.
func (c *refuse) Evaluate(tx *ranges.Tx) error {
	c.taken = nil
	have, err := record.Look(tx, c.of.Name)
	if err != nil {
		return err
	}
	want := claimed(&c.of)
	if a := have.Account; a != nil && a.Active && a.Primary == tx.Location() && a.GeoEpoch().Compare(c.of.GeoEpoch()) > 0 {
		c.taken = a
		return nil
	}
	if have.Seen.Compare(want) >= 0 {
		return nil
	}
	seen, err := catalog.SeenOp(want)
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.of.Name)
	return tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{seen}})
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*refuse) Reclaims() {}
