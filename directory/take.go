package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
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
func (d *Directory) Offer(ctx context.Context, o Offer) (*catalog.Account, error) {
	cmd := &take{of: o}
	now, err := d.Account(ctx, o.Account.Name)
	if err != nil {
		return nil, err
	}
	if now.GeoEpoch().Compare(o.Account.GeoEpoch()) <= 0 { // Else a second call, or a late one: the command finds which.
		if err := d.reach(ctx, o.Account.Name, o.Account.GeoEpoch(), o.Ends); errors.Is(err, errBehind) {
			return nil, storageerr.ServerBusy.Saying(err.Error())
		} else if err != nil {
			return nil, err
		}
	}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	if cmd.done {
		d.moved(record.MoveTaken, &cmd.taken, "")
	}
	if op := cmd.taken.Operation; op != nil && op.Kind == catalog.OperationTaken { // Else a late call.
		_ = d.openTaken(ctx, cmd.taken) // Resume follows. Clients wait for it, and for nothing else.
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
func (d *Directory) Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	cmd := &refuse{of: a}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
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

// Reclaims implements ranges.Reclaimer: see alter.
func (*refuse) Reclaims() {}

// openTaken sets the gates of an account that this location has taken, in all ranges but the catalog.
func (d *Directory) openTaken(ctx context.Context, a catalog.Account) error {
	for _, r := range d.stamp.Route().Data(a.Name) {
		cmd := &openTaken{record.SetGate{Account: a.Name, Gate: record.PrimaryGate(&a), After: a.Operation.After}}
		if err := d.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("account %s: its gate in the %s range: %w", a.Name, r.Service, err)
		}
		if cmd.Found.Compare(cmd.Gate.Epoch) > 0 {
			return &record.PassedError{Seen: cmd.Found}
		}
	}
	return nil
}

// taken goes on with the operation of an account that this location has taken. While the former primary does not answer,
// the witness at least is to know of it.
func (d *Directory) taken(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	again, err = d.adopted(ctx, a)
	if op := a.Operation; err != nil && op.Unclaimed && !op.Diverged && !op.Rewinding {
		err = errors.Join(err, d.claimTaken(ctx, a))
	}
	return again, err
}

// adopted goes on until the former primary has adopted the account.
func (d *Directory) adopted(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	switch {
	case a.Operation.Diverged:
		return 0, ErrDiverged
	case a.Operation.Rewinding:
		return d.rewind(ctx, a)
	}
	var passed *record.PassedError
	if err = d.openTaken(ctx, a); errors.As(err, &passed) {
		return record.MovePause, nil // The account has gone on since.
	}
	t := Taken{Account: a, Opened: true, Catalog: true}
	if err == nil && a.Operation.Unplanned {
		t.Forks, err = d.forks(ctx, a.Name)
	}
	if err == nil {
		err = d.peer.Adopt(ctx, t)
	}
	switch {
	case errors.As(err, &passed):
		return record.MovePause, d.stamp.Commit(ctx, raiseTaken{of: a, above: passed.Seen})
	case errors.Is(err, errRewinds):
		return record.MovePause, d.stamp.Commit(ctx, rewindTaken{of: a})
	case errors.Is(err, ErrDiverged):
		return 0, errors.Join(err, d.stamp.Commit(ctx, divergedTaken{a}))
	case err != nil:
		return 0, err
	}
	return 0, d.endTaken(ctx, a)
}

// endTaken ends the operation of an account that this location has taken, and before that the streams of its own former
// epochs: the location that it followed last had all of them, and Adopt with Opened may not have come from there.
func (d *Directory) endTaken(ctx context.Context, a catalog.Account) error {
	if err := d.stamp.End(ctx, d.stamp.Route().Everywhere(a.Name), a.Name, a.GeoEpoch()); err != nil {
		return err
	}
	return d.stamp.Commit(ctx, record.Finish{Of: a})
}

// raiseTaken has an account that this location has taken without asking the former primary go on in an epoch above one that
// has begun there since. The former primary has not followed this location in any epoch yet.
type raiseTaken struct {
	of    catalog.Account
	above geo.Epoch
}

// Evaluate implements ranges.Command.
func (c raiseTaken) Evaluate(tx *ranges.Tx) error {
	a, have, err := record.OfTaken(tx, c.of)
	if a == nil || err != nil || !a.Operation.Unplanned || c.above.Compare(a.GeoEpoch()) <= 0 {
		return err
	}
	at, op := tx.Timestamp(0), *a.Operation
	op.After, a.Operation = at, &op
	a.Epoch = max(have.Seen.Number, c.above.Number) + 1
	tx.SetGate(a.Name, record.PrimaryGate(a))
	return record.Stage(tx, a, at)
}

// Reclaims implements ranges.Reclaimer: see alter.
func (raiseTaken) Reclaims() {}

// divergedTaken commits that the former primary of an account has diverged.
type divergedTaken struct{ of catalog.Account }

// Evaluate implements ranges.Command.
func (c divergedTaken) Evaluate(tx *ranges.Tx) error {
	a, _, err := record.OfTaken(tx, c.of)
	if a == nil || err != nil {
		return err
	}
	op := *a.Operation
	op.Diverged, a.Operation = true, &op
	return record.StageAccount(tx, tx.Timestamp(0), a)
}

// Reclaims implements ranges.Reclaimer: see alter.
func (divergedTaken) Reclaims() {}

// openTaken is setGate for an account that the location has taken. The other location has all that the range has of it:
// the image of the epoch is complete before it begins. After an unplanned failover that holds where the former primary
// opens its gate of the epoch: where it has exactly what the copy here had. Elsewhere the gate stays closed until the copy
// is made again there, with an image of a later epoch.
type openTaken struct{ record.SetGate }

// Evaluate implements ranges.Command.
func (c *openTaken) Evaluate(tx *ranges.Tx) error {
	if err := c.SetGate.Evaluate(tx); err != nil || c.Found.Compare(c.Gate.Epoch) > 0 {
		return err
	}
	image, err := tx.Image(c.Account)
	if err == nil && image.Epoch != c.Gate.Epoch {
		tx.SetImage(c.Account, change.Image{Epoch: c.Gate.Epoch, Done: make([]geo.Seq, geo.LaneCount)})
	}
	return err
}

// kindOpenTaken is the kind of openTaken. It is on the wire: never rename it.
const kindOpenTaken = "directory.openTaken"

// Kind implements ranges.Portable.
func (c *openTaken) Kind() string { return kindOpenTaken }

func parseOpenTaken(b []byte) (*openTaken, error) {
	c, err := record.ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.Gate.Role != change.RolePrimary || !c.Gate.Numbered {
		return nil, fmt.Errorf("%w: an account is taken with gate %+v", record.ErrCommand, c.Gate)
	}
	return &openTaken{*c}, nil
}
