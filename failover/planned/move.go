package planned

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
//	  ──Offer: the other location takes the account, which is the one commit point: see offer.go──>
//	the record of the other location, in a later epoch: see rejoin.Rejoiner.Adopt
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
func (mv *Mover) Move(ctx context.Context, name geo.Account, within time.Duration) (*catalog.Account, error) {
	if err := mv.CheckMove(ctx, name); err != nil {
		return nil, err
	}
	return mv.Begin(ctx, name, within)
}

// Begin is Move without a question to the other location: the account waits in the phase draining for its answer.
func (mv *Mover) Begin(ctx context.Context, name geo.Account, within time.Duration) (*catalog.Account, error) {
	if within <= 0 || within > MoveWithinMax {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("a move takes up to %s, not %s", MoveWithinMax, within))
	}
	cmd := &beginMove{name: name, within: within}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	mv.moved(record.MoveBegun, &cmd.stored, "")
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
func (mv *Mover) EndMove(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	cmd := &endMove{name: name}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
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

// Resume goes on with the move of an account.
func (mv *Mover) Resume(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	switch a.Operation.Move.Phase {
	case catalog.MoveDraining:
		return mv.drainAhead(ctx, a)
	case catalog.MoveClosing:
		return mv.closeMoving(ctx, a)
	case catalog.MoveOffered:
		return mv.offer(ctx, a)
	case catalog.MoveEnding:
		return mv.reopen(ctx, a)
	}
	return 0, fmt.Errorf("directory: phase %q of the move of account %s: %w", a.Operation.Move.Phase, a.Name, feature.ErrLater)
}

// late reports whether the time of a move is over.
func (mv *Mover) late(a catalog.Account) bool {
	return !mv.clock.Now().Before(a.Operation.Move.Until.Time())
}

// step commits the next phase of a move, unless it has gone on otherwise.
func (mv *Mover) step(ctx context.Context, a catalog.Account, to catalog.Move, more ...change.Op) (again time.Duration, err error) {
	cmd := &moveTo{of: a, to: to, more: more}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
		return record.MovePause, err
	}
	if kind := moveSteps[to.Phase]; cmd.done {
		mv.moved(kind, &a, to.Reason)
	}
	return record.MovePause, nil
}

// giveUp has a move end without effect; waits is what it waited for.
func (mv *Mover) giveUp(ctx context.Context, a catalog.Account, waits string, more ...change.Op) (again time.Duration, err error) {
	return mv.endFor(ctx, a, "its time was over while "+waits, more...)
}

// endFor has a move end without effect, for a reason, unless it ends for another one.
func (mv *Mover) endFor(ctx context.Context, a catalog.Account, reason string, more ...change.Op) (again time.Duration, err error) {
	to := a.Operation.Move
	if to.Phase = catalog.MoveEnding; to.Reason == "" {
		to.Reason = reason
	}
	return mv.step(ctx, a, to, more...)
}

// drainAhead waits until little is on its way, and the streams are seen to move: see mark.
func (mv *Mover) drainAhead(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	m := mv.marks.get(&a)
	found, err := mv.drains(ctx, a, m == nil)
	if err == nil && m == nil {
		m = &mark{epoch: a.GeoEpoch(), until: a.Operation.Move.Until, at: mv.clock.Now(), found: found}
		mv.marks.set(a.Name, m)
	}
	waiting := waitingOf(found)
	if err != nil || waiting > moveWaitingMax {
		if mv.late(a) {
			return mv.giveUp(ctx, a, fmt.Sprintf("%d bytes were on their way to %s", waiting, a.Secondary))
		}
		return record.MovePause, err
	}
	if err = mv.answers(ctx, a); err != nil {
		if mv.late(a) {
			return mv.endFor(ctx, a, mv.silent(err))
		}
		return record.MovePause, err
	}
	if err = mv.stands(ctx, a, m, found); err != nil {
		if mv.late(a) {
			return mv.giveUp(ctx, a, err.Error())
		}
		if mv.clock.Now().Sub(m.at) < answerFresh {
			err = nil // So long is usual.
		}
		return record.MovePause, err
	}
	to := a.Operation.Move
	to.Phase = catalog.MoveClosing
	return mv.step(ctx, a, to)
}

// closeMoving closes the gates, and waits until the other location has everything. No write is taken meanwhile: it ends
// within operationWait where the other location does not answer.
func (mv *Mover) closeMoving(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	waiting := uint64(0)
	if !plantedbugs.Planted(plantedbugs.OfferedOpen) {
		err = record.SetGates(ctx, mv.stamp, a.Name, record.PrimaryGate(&a), 0, record.Once)
	}
	if err == nil {
		_, waiting, err = mv.ends(ctx, a)
	}
	silent := mv.answers(ctx, a)
	switch {
	case silent != nil && mv.answering.silent() >= record.OperationWait:
		return mv.endFor(ctx, a, mv.silent(silent))
	case err == nil && waiting == 0 && silent == nil:
		return mv.claim(ctx, a, 0)
	case mv.late(a):
		return mv.giveUp(ctx, a, fmt.Sprintf("the last %d bytes were on their way to %s", waiting, a.Secondary))
	}
	return record.MovePause, errors.Join(err, silent)
}

// claim offers the account in an epoch above a number, and above all that were seen here.
func (mv *Mover) claim(ctx context.Context, a catalog.Account, above geo.EpochNumber) (again time.Duration, err error) {
	to := a.Operation.Move
	to.Phase, to.Claim = catalog.MoveOffered, max(above, a.Epoch, to.Claim)+1
	return mv.step(ctx, a, to)
}

// offer has the other location take the account, or learns that it has, or that it never will.
func (mv *Mover) offer(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if mv.late(a) {
		return mv.withdraw(ctx, a)
	}
	ends, waiting, err := mv.ends(ctx, a)
	if err != nil {
		return record.MovePause, err
	}
	if waiting > 0 { // A range was recovered with loss meanwhile, and begins again where it had been.
		return record.MovePause, nil
	}
	taken, err := mv.peer.Offer(ctx, Offer{Account: a, Ends: ends})
	var passed *record.PassedError
	switch {
	case errors.As(err, &passed):
		return mv.claim(ctx, a, passed.Seen.Number)
	case err != nil:
		return record.MovePause, err
	}
	return record.MovePause, mv.follows(ctx, *taken)
}

// follows adopts the record of the other location, which has taken the account: by the offer, or by an unplanned failover
// meanwhile. Then it calls Adopt itself, with where the copy there ended (R20).
func (mv *Mover) follows(ctx context.Context, taken catalog.Account) error {
	if op := taken.Operation; op != nil && op.Unplanned {
		return nil
	}
	return mv.rejoin.Adopt(ctx, rejoin.Taken{Account: taken})
}

// withdraw ends an offer: the other location refuses it for ever, unless it has taken the account.
func (mv *Mover) withdraw(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	var taken *catalog.Account
	if !plantedbugs.Planted(plantedbugs.WithdrawnUnrefused) {
		taken, err = mv.peer.Refuse(ctx, a)
	}
	if err != nil {
		return record.MovePause, err
	}
	if taken != nil {
		return record.MovePause, mv.follows(ctx, *taken)
	}
	seen, err := catalog.SeenOp(claimed(&a))
	if err != nil {
		return 0, err
	}
	return mv.giveUp(ctx, a, string(a.Secondary)+" did not answer that it has taken the account", seen)
}

// claimed is the epoch in which the secondary of an account is to be its primary.
func claimed(a *catalog.Account) geo.Epoch {
	return geo.Epoch{Number: a.Operation.Move.Claim, Location: a.Secondary}
}

// reopen opens the gates of a move that ends without effect.
func (mv *Mover) reopen(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if err := record.SetGates(ctx, mv.stamp, a.Name, record.PrimaryGate(&a), 0, record.Once); err != nil {
		return 0, err
	}
	return 0, mv.stamp.Commit(ctx, record.Finish{Of: a})
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

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*moveTo) Reclaims() {}

// Keep forgets the accounts that have no operation any more.
func (mv *Mover) Keep(operations map[geo.Account]bool) { mv.marks.keep(operations) }
