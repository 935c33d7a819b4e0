package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
)

// The planned move of an account to its secondary (R19), at its present primary:
//
//	draining ──little is on its way, the other location has answered within the last second, and the streams are seen to
//	  move: see progress.go──>
//	closing: the catalog's gate is closed by the group whose record is the last of the catalog's stream
//	  ──the gates of the other ranges close; the other location acknowledges all that they have──>
//	offered: nothing is served under the primary's name
//	  ──Offer: the other location takes the account, which is the one commit point: see take.go──>
//	the record of the other location, in a later epoch: see adopt.go
//
// A move that does not end in time, or that an operator ends, goes from any phase to
//
//	ending: the catalog's gate is open ──the gates of the other ranges open──> no operation
//
// from offered only once the other location has refused the epoch for ever (Refuse): else it may have taken it, or take it
// later. Every step is committed before the next begins, and may be repeated. The gates have a turn, so that a close that
// is late does not close what was opened again.

const (
	// moveWaitingMax is how many bytes may be on their way when the gates close: at 100 Mbit/s they take 80 ms.
	moveWaitingMax = 1 << 20
	// MoveWithin is how long a move may take if nobody says otherwise.
	MoveWithin = 30 * time.Second
	// MoveWithinMax bounds what is said.
	MoveWithinMax = time.Hour
)

// Move begins the planned move of an account whose primary is here to its secondary (R19). It ends by itself, without
// effect, if the other location has not taken the account within a time. It returns the account as it is now: Resume goes
// on. Errors that change nothing: AccountNotFound; OperationInProgress; InvalidInput where the primary is elsewhere, there
// is no secondary, or its copy is not whole; ServerBusy, also where the other location does not answer.
func (d *Directory) Move(ctx context.Context, name geo.Account, within time.Duration) (*catalog.Account, error) {
	if err := d.CheckMove(ctx, name); err != nil {
		return nil, err
	}
	return d.beginMove(ctx, name, within)
}

// beginMove is Move without a question to the other location: the account waits in the phase draining for its answer.
func (d *Directory) beginMove(ctx context.Context, name geo.Account, within time.Duration) (*catalog.Account, error) {
	if within <= 0 || within > MoveWithinMax {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("a move takes up to %s, not %s", MoveWithinMax, within))
	}
	cmd := &beginMove{name: name, within: within}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	d.moved(record.MoveBegun, &cmd.stored, "")
	return &cmd.stored, nil
}

// beginMove begins a move.
type beginMove struct {
	name   geo.Account
	within time.Duration
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *beginMove) Evaluate(tx *ranges.Tx) error {
	have, err := record.LookHere(tx, c.name)
	if err != nil {
		return err
	}
	a := have.Account
	switch gate := tx.Gate(a.Name); {
	case a.Operation != nil:
		return record.ErrOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation.Describe()))
	case !a.Redundancy.Geo():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("account %s is %s: there is no other location to move it to", a.Name, a.Redundancy))
	case gate != record.PrimaryGate(a):
		return storageerr.ServerBusy
	}
	c.stored = *a
	at := tx.Timestamp(0)
	c.stored.Operation = &catalog.Operation{
		Kind: catalog.OperationMove, Move: catalog.Move{Phase: catalog.MoveDraining, Until: geo.TimestampOf(tx.Now().Add(c.within))},
	}
	return record.StageAccount(tx, at, &c.stored)
}

// EndMove has the move of an account end without effect, if the other location has not taken the account. Resume goes on.
// InvalidInput if no move is under way, or it ends already.
func (d *Directory) EndMove(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	cmd := &endMove{name: name}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	return &cmd.stored, nil
}

// endMove has a move end as if its time were over.
type endMove struct {
	name   geo.Account
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *endMove) Evaluate(tx *ranges.Tx) error {
	have, err := record.LookHere(tx, c.name)
	if err != nil {
		return err
	}
	a := have.Account
	if !a.Moves() || a.Operation.Move.Phase == catalog.MoveEnding {
		return storageerr.InvalidInput.Saying(fmt.Sprintf("account %s: no failover is under way that could be ended", c.name))
	}
	at, op := tx.Timestamp(0), *a.Operation
	op.Move.Until, op.Move.Reason = geo.TimestampOf(tx.Now()), "an operator ended it"
	a.Operation = &op
	c.stored = *a
	return record.StageMoving(tx, at, a)
}

// move goes on with the move of an account.
func (d *Directory) move(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	switch a.Operation.Move.Phase {
	case catalog.MoveDraining:
		return d.drainAhead(ctx, a)
	case catalog.MoveClosing:
		return d.closeMoving(ctx, a)
	case catalog.MoveOffered:
		return d.offer(ctx, a)
	case catalog.MoveEnding:
		return d.reopen(ctx, a)
	}
	return 0, fmt.Errorf("directory: phase %q of the move of account %s: %w", a.Operation.Move.Phase, a.Name, feature.ErrLater)
}

// late reports whether the time of a move is over.
func (d *Directory) late(a catalog.Account) bool {
	return !d.clock.Now().Before(a.Operation.Move.Until.Time())
}

// step commits the next phase of a move, unless it has gone on otherwise.
func (d *Directory) step(ctx context.Context, a catalog.Account, to catalog.Move, more ...change.Op) (again time.Duration, err error) {
	cmd := &moveTo{of: a, to: to, more: more}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return record.MovePause, err
	}
	if kind := moveSteps[to.Phase]; cmd.done {
		d.moved(kind, &a, to.Reason)
	}
	return record.MovePause, nil
}

// giveUp has a move end without effect; waits is what it waited for.
func (d *Directory) giveUp(ctx context.Context, a catalog.Account, waits string, more ...change.Op) (again time.Duration, err error) {
	return d.endFor(ctx, a, "its time was over while "+waits, more...)
}

// endFor has a move end without effect, for a reason, unless it ends for another one.
func (d *Directory) endFor(ctx context.Context, a catalog.Account, reason string, more ...change.Op) (again time.Duration, err error) {
	to := a.Operation.Move
	if to.Phase = catalog.MoveEnding; to.Reason == "" {
		to.Reason = reason
	}
	return d.step(ctx, a, to, more...)
}

// drainAhead waits until little is on its way, and the streams are seen to move: see mark.
func (d *Directory) drainAhead(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	m := d.marks.get(&a)
	found, err := d.drains(ctx, a, m == nil)
	if err == nil && m == nil {
		m = &mark{epoch: a.GeoEpoch(), until: a.Operation.Move.Until, at: d.clock.Now(), found: found}
		d.marks.set(a.Name, m)
	}
	waiting := waitingOf(found)
	if err != nil || waiting > moveWaitingMax {
		if d.late(a) {
			return d.giveUp(ctx, a, fmt.Sprintf("%d bytes were on their way to %s", waiting, a.Secondary))
		}
		return record.MovePause, err
	}
	if err = d.answers(ctx, a); err != nil {
		if d.late(a) {
			return d.endFor(ctx, a, d.silent(err))
		}
		return record.MovePause, err
	}
	if err = d.stands(ctx, a, m, found); err != nil {
		if d.late(a) {
			return d.giveUp(ctx, a, err.Error())
		}
		if d.clock.Now().Sub(m.at) < answerFresh {
			err = nil // So long is usual.
		}
		return record.MovePause, err
	}
	to := a.Operation.Move
	to.Phase = catalog.MoveClosing
	return d.step(ctx, a, to)
}

// closeMoving closes the gates, and waits until the other location has everything. No write is taken meanwhile: it ends
// within operationWait where the other location does not answer.
func (d *Directory) closeMoving(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	waiting := uint64(0)
	if !plantedbugs.Planted(plantedbugs.OfferedOpen) {
		err = record.SetGates(ctx, d.stamp, a.Name, record.PrimaryGate(&a), 0, record.Once)
	}
	if err == nil {
		_, waiting, err = d.ends(ctx, a)
	}
	silent := d.answers(ctx, a)
	switch {
	case silent != nil && d.answering.silent() >= record.OperationWait:
		return d.endFor(ctx, a, d.silent(silent))
	case err == nil && waiting == 0 && silent == nil:
		return d.claim(ctx, a, 0)
	case d.late(a):
		return d.giveUp(ctx, a, fmt.Sprintf("the last %d bytes were on their way to %s", waiting, a.Secondary))
	}
	return record.MovePause, errors.Join(err, silent)
}

// claim offers the account in an epoch above a number, and above all that were seen here.
func (d *Directory) claim(ctx context.Context, a catalog.Account, above geo.EpochNumber) (again time.Duration, err error) {
	to := a.Operation.Move
	to.Phase, to.Claim = catalog.MoveOffered, max(above, a.Epoch, to.Claim)+1
	return d.step(ctx, a, to)
}

// offer has the other location take the account, or learns that it has, or that it never will.
func (d *Directory) offer(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if d.late(a) {
		return d.withdraw(ctx, a)
	}
	ends, waiting, err := d.ends(ctx, a)
	if err != nil {
		return record.MovePause, err
	}
	if waiting > 0 { // A range was recovered with loss meanwhile, and begins again where it had been.
		return record.MovePause, nil
	}
	taken, err := d.peer.Offer(ctx, Offer{Account: a, Ends: ends})
	var passed *record.PassedError
	switch {
	case errors.As(err, &passed):
		return d.claim(ctx, a, passed.Seen.Number)
	case err != nil:
		return record.MovePause, err
	}
	return record.MovePause, d.follows(ctx, *taken)
}

// follows adopts the record of the other location, which has taken the account: by the offer, or by an unplanned failover
// meanwhile. Then it calls Adopt itself, with where the copy there ended (R20).
func (d *Directory) follows(ctx context.Context, taken catalog.Account) error {
	if op := taken.Operation; op != nil && op.Unplanned {
		return nil
	}
	return d.rejoin.Adopt(ctx, rejoin.Taken{Account: taken})
}

// withdraw ends an offer: the other location refuses it for ever, unless it has taken the account.
func (d *Directory) withdraw(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	var taken *catalog.Account
	if !plantedbugs.Planted(plantedbugs.WithdrawnUnrefused) {
		taken, err = d.peer.Refuse(ctx, a)
	}
	if err != nil {
		return record.MovePause, err
	}
	if taken != nil {
		return record.MovePause, d.follows(ctx, *taken)
	}
	seen, err := catalog.SeenOp(claimed(&a))
	if err != nil {
		return 0, err
	}
	return d.giveUp(ctx, a, string(a.Secondary)+" did not answer that it has taken the account", seen)
}

// claimed is the epoch in which the secondary of an account is to be its primary.
func claimed(a *catalog.Account) geo.Epoch {
	return geo.Epoch{Number: a.Operation.Move.Claim, Location: a.Secondary}
}

// reopen opens the gates of a move that ends without effect.
func (d *Directory) reopen(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if err := record.SetGates(ctx, d.stamp, a.Name, record.PrimaryGate(&a), 0, record.Once); err != nil {
		return 0, err
	}
	return 0, d.stamp.Commit(ctx, record.Finish{Of: a})
}

// moveTo commits the next phase of a move. From the phase closing on the gate is closed, in the group of the record that
// is the last one of the catalog's stream; the phase ending opens it.
type moveTo struct {
	of   catalog.Account
	to   catalog.Move
	more []change.Op
	done bool
}

// Evaluate implements ranges.Command.
func (c *moveTo) Evaluate(tx *ranges.Tx) error {
	c.done = false
	have, err := record.Look(tx, c.of.Name)
	if err != nil {
		return err
	}
	a := have.Account
	if a == nil || a.Operation == nil || a.GeoEpoch() != c.of.GeoEpoch() || *a.Operation != *c.of.Operation {
		return nil
	}
	op := *a.Operation
	op.Move, a.Operation = c.to, &op
	if c.to.Phase == catalog.MoveOffered {
		op.Again = 0 // From here on it counts what the offer has not compared: see adopt.
	}
	ending := c.to.Phase == catalog.MoveEnding
	if a.Closed() == ending && c.to.Phase != catalog.MoveOffered {
		a.Turn++ // Closing closes, ending opens what was closed.
	}
	gate := record.PrimaryGate(a)
	if gate.Open {
		tx.SetGate(a.Name, gate)
	}
	if err := record.StageMoving(tx, tx.Timestamp(0), a, c.more...); err != nil {
		return err
	}
	if !gate.Open {
		tx.SetGate(a.Name, gate)
	}
	c.done = true
	return nil
}

// Reclaims implements ranges.Reclaimer: see alter.
func (*moveTo) Reclaims() {}
