package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// The bootstrap of an account's copy (R17), at the account's primary:
//
//	the row with a new epoch, no gate of which has numbers
//	  ──the gates of the other ranges; what the outboxes hold of former epochs is dropped──>
//	  ──Prepare: the other location deletes what it has of the account, and opens the gates of the epoch──>
//	copying: all gates have numbers
//	  ──containers that the catalog does not have are closed: see generations.go──>
//	  ──a count of the account's rows in all ranges: see count.go──>
//	  ──the images of all ranges──>
//	imaged: that of the catalog ends with what it has committed by now
//	  ──the other location has applied them──>
//	complete
//
// An image lacks the rows of a container that was deleted while it was made: they are closed, or swept. Without its deletion,
// which is behind the rows of the catalog, the copy would have the container without them, and a failover would lose what a
// Last Sync Time has promised.
//
// Every step is committed before the next begins, and may be repeated. What was begun in a former epoch has no
// effect in this one. Only Prepare needs the other location to answer a call.

// Images makes the images of accounts; package primary implements it.
type Images interface {
	// CountRows returns what the next rows of an account add to the size of its image in a range, from a
	// key on, nil for the first; next is nil at the end.
	CountRows(ctx context.Context, d route.Range, a geo.Account, from []byte) (size change.ImageSize, next []byte, err error)
	// BeginImage commits that the image of an account in a range begins, and what was counted there.
	// One that has begun in the epoch stays as it is.
	BeginImage(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, counted change.ImageSize) error
	// StepImage commits the next step of the image of an account in a range. It takes about bytesMax
	// bytes at most, payload included, but one row at least; 0 is no bound but its own.
	StepImage(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, bytesMax uint64) (ranges.ImageStep, error)
	// CloseGeneration commits that a container takes no more changes, in all ranges of the account in its service (R8). An
	// image leaves its rows out.
	CloseGeneration(ctx context.Context, s geo.Service, a geo.Account, container string, g keys.Generation) error
	// Rewind numbers rows of an account once more, as they are in the range. bytes are those of the rows, payload included. It
	// ends once these are bytesMax, if that is not 0; done is how many rows it has numbered.
	Rewind(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, keys [][]byte, bytesMax uint64) (done int, bytes uint64, err error)
}

// imageStepsMax bounds what one call of Resume does for one account, so that several take turns.
const imageStepsMax = 256

// When a bootstrap goes on that is held back by its rate.
const (
	// bootstrapRests is the longest pause of one that is held back by its rate.
	bootstrapRests = time.Second
)

// Resume goes on with the bootstrap of an account. again is after what time it may go on, 0 if it ended.
func (cp *Copier) Resume(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if !a.Copying() {
		begun, err := cp.beginCopy(ctx, a)
		if err != nil {
			return 0, err
		}
		if begun == nil {
			return record.NextTurn, nil
		}
		a = *begun
	}
	err = record.SetGates(ctx, cp.stamp, a.Name, record.PrimaryGate(&a), a.Operation.After, record.Once)
	var passed *record.PassedError
	if errors.As(err, &passed) {
		return record.NextTurn, nil // The account has gone on since.
	}
	if err != nil {
		return 0, err
	}
	applied := true
	for _, r := range imageOrder(cp.stamp.Route(), a.Name) {
		step, paced, err := cp.stepImage(ctx, r, a)
		switch {
		case err != nil:
			return 0, fmt.Errorf("the image of the %s range: %w", r.Service, err)
		case paced > 0:
			return paced, nil
		case step.Uncounted:
			return cp.count(ctx, a)
		case step.Held:
			return record.ApplyWait, nil
		case step.Image.Done == nil:
			return record.NextTurn, nil
		}
		applied = applied && step.Applied
	}
	if !a.Operation.Imaged {
		return record.NextTurn, cp.stamp.Commit(ctx, imaged{a})
	}
	if !applied && !plantedbugs.Planted(plantedbugs.LiveBeforeApplied) {
		return record.ApplyWait, nil
	}
	return 0, cp.stamp.Commit(ctx, record.Finish{Of: a})
}

// stepImage makes steps of the image of one range, until it is complete, waits for the other location, or has
// had its turn. paced is after what time the rate of the operation lets it go on, 0 if something else ended it.
func (cp *Copier) stepImage(ctx context.Context, r route.Range, a catalog.Account) (step ranges.ImageStep, paced time.Duration, err error) {
	for range imageStepsMax {
		if paced = cp.paces.wait(a, cp.clock.Mono()); paced > 0 {
			return step, paced, nil
		}
		step, err = cp.images.StepImage(ctx, r, a.Name, a.GeoEpoch(), stepMax(a.Operation.Rate))
		took := step.Took.Bytes + step.Took.Payload
		if errors.Is(err, kv.ErrUnknown) {
			took = stepMax(a.Operation.Rate) // It may have been committed.
		}
		cp.paces.took(a, cp.clock.Mono(), took)
		if err != nil || step.Held || step.Uncounted || step.Image.Done != nil {
			return step, 0, err
		}
	}
	return step, 0, nil
}

// beginCopy goes through the steps up to an empty copy. It returns the account as it is then, nil if it has gone
// on otherwise.
func (cp *Copier) beginCopy(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	if gone, err := cp.stamp.CloseStreams(ctx, a); gone || err != nil {
		return nil, err
	}
	err := cp.peer.Prepare(ctx, a)
	var passed *record.PassedError
	if errors.As(err, &passed) {
		// The other location has seen a later epoch of the name: the bootstrap begins again above it.
		return nil, cp.stamp.Commit(ctx, raise{of: a, above: passed.Seen})
	}
	if err != nil {
		return nil, err
	}
	if err := cp.stamp.End(ctx, cp.stamp.Route().Everywhere(a.Name), a.Name, a.GeoEpoch()); err != nil {
		return nil, err
	}
	cmd := &startCopy{of: a}
	if err := cp.stamp.Commit(ctx, cmd); err != nil {
		return nil, err // It may be evaluated yet.
	}
	return cmd.started, nil
}

// same returns the account of a bootstrap if its record is still of it, and it has not begun again.
func same(tx *ranges.Tx, of catalog.Account) (*catalog.Account, record.Known, error) {
	have, err := record.Look(tx, of.Name)
	if err != nil || have.Account == nil || !have.Account.Bootstraps() || have.Account.GeoEpoch() != of.GeoEpoch() ||
		have.Account.Operation.Again != of.Operation.Again {
		return nil, have, err
	}
	return have.Account, have, nil
}

// startCopy commits that the copy begins: from here on the catalog numbers the account's changes, of which this is
// the first.
type startCopy struct {
	of catalog.Account
	// started is nil if the account has gone on.
	started *catalog.Account
}

// Evaluate implements ranges.Command.
func (c *startCopy) Evaluate(tx *ranges.Tx) error {
	a, _, err := same(tx, c.of)
	if c.started = a; a == nil || err != nil || a.Copying() {
		return err
	}
	a.Operation.Copying = true
	tx.SetGate(a.Name, record.PrimaryGate(a))
	return record.StageAccount(tx, tx.Timestamp(0), a)
}

// Reclaims implements ranges.Reclaimer: see alter.
func (c *startCopy) Reclaims() {}

// imaged commits that the images of all ranges are complete, and has that of the catalog end here. One that is not complete
// ends later.
type imaged struct{ of catalog.Account }

// Evaluate implements ranges.Command.
func (c imaged) Evaluate(tx *ranges.Tx) error {
	a, _, err := same(tx, c.of)
	if a == nil || err != nil {
		return err
	}
	a.Operation.Imaged = true
	if err := record.StageAccount(tx, tx.Timestamp(0), a); err != nil {
		return err
	}
	m, err := tx.Image(a.Name)
	if err != nil || m.Epoch != a.GeoEpoch() || m.Done == nil {
		return err
	}
	m.Done = record.ImageEnds(tx, a.Name, m.Epoch)
	tx.SetImage(a.Name, m)
	return nil
}

// Reclaims implements ranges.Reclaimer: see alter.
func (imaged) Reclaims() {}

// raise begins a bootstrap again in an epoch above one that was seen for the name. Nothing is shipped yet.
type raise struct {
	of    catalog.Account
	above geo.Epoch
}

// Evaluate implements ranges.Command.
func (c raise) Evaluate(tx *ranges.Tx) error {
	a, have, err := same(tx, c.of)
	if a == nil || err != nil || a.Copying() {
		return err
	}
	a.Epoch = max(have.Seen.Number, c.above.Number) + 1
	if err := record.Stage(tx, a, tx.Timestamp(0)); err != nil {
		return err
	}
	tx.SetGate(a.Name, record.PrimaryGate(a))
	return nil
}

// Reclaims implements ranges.Reclaimer: see alter.
func (raise) Reclaims() {}

// Prepare implements Peer at the secondary.
func (cp *Copier) Prepare(ctx context.Context, a catalog.Account) error {
	if err := cp.KeepCopy(ctx, a); err != nil {
		return err
	}
	if err := cp.stamp.Commit(ctx, prepare{a}); err != nil {
		return err
	}
	return cp.stamp.WipeCopy(ctx, a.Name, record.SecondaryGate(&a))
}

// prepare stores the record of an account whose copy begins here, and closes the catalog's gate for its epoch: what is
// under way of former epochs is not applied any more.
//
// Rules: an account of this location stays, and so does the record of a later epoch. An incomplete record is
// replaced, as in announced.
type prepare struct{ want catalog.Account }

// Evaluate implements ranges.Command.
func (c prepare) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.want.Name)
	if err != nil {
		return err
	}
	if err := have.Replaceable(); err != nil {
		return err
	}
	a, gate := c.want, tx.Gate(c.want.Name)
	switch old := have.Account; {
	case old != nil && old.Active && old.Primary != a.Primary:
		return storageerr.AccountAlreadyExists
	case have.Seen.Compare(a.GeoEpoch()) > 0:
		return &record.PassedError{Seen: have.Seen}
	case gate.Epoch == a.GeoEpoch():
		return nil // A second call.
	}
	a.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}
	seen, err := catalog.SeenOp(a.GeoEpoch())
	if err != nil {
		return err
	}
	if err := record.StageAccount(tx, tx.Timestamp(0), &a, seen); err != nil {
		return err
	}
	tx.SetGate(a.Name, change.Gate{Epoch: a.GeoEpoch()})
	return nil
}

// Reclaims implements ranges.Reclaimer: the deletion of the former copy follows.
func (prepare) Reclaims() {}
