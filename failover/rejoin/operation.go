package rejoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// Forks reads the fork records of an account, by source range.
func (j *Rejoiner) Forks(ctx context.Context, name geo.Account) (out []catalog.Fork, err error) {
	err = j.stamp.Read(ctx, j.stamp.Route().Catalog(), func(s ranges.State) error {
		out = nil
		for _, r := range j.stamp.Route().Everywhere(name) {
			f, err := catalog.GetFork(s, name, r.ID)
			if err != nil {
				return err
			}
			if f != nil {
				out = append(out, *f)
			}
		}
		return nil
	})
	return out, err
}

// OpenGates sets the gates of an account that this location has taken, in all ranges but the catalog.
func (j *Rejoiner) OpenGates(ctx context.Context, a catalog.Account) error {
	for _, r := range j.stamp.Route().Data(a.Name) {
		cmd := &openTaken{record.SetGate{Account: a.Name, Gate: record.PrimaryGate(&a), After: a.Operation.After}}
		if err := j.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("account %s: its gate in the %s range: %w", a.Name, r.Service, err)
		}
		if cmd.Found.Compare(cmd.Gate.Epoch) > 0 {
			return &record.PassedError{Seen: cmd.Found}
		}
	}
	return nil
}

// Resume goes on with the operation of an account that this location has taken. While the former primary does not answer,
// the witness at least is to know of it.
func (j *Rejoiner) Resume(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	again, err = j.adopted(ctx, a)
	if op := a.Operation; err != nil && op.Unclaimed && !op.Diverged && !op.Rewinding {
		err = errors.Join(err, j.claim(ctx, a))
	}
	return again, err
}

// adopted goes on until the former primary has adopted the account.
func (j *Rejoiner) adopted(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	switch {
	case a.Operation.Diverged:
		return 0, ErrDiverged
	case a.Operation.Rewinding:
		return j.rewind(ctx, a)
	}
	var passed *record.PassedError
	if err = j.OpenGates(ctx, a); errors.As(err, &passed) {
		return record.MovePause, nil // The account has gone on since.
	}
	t := Taken{Account: a, Opened: true, Catalog: true}
	if err == nil && a.Operation.Unplanned {
		t.Forks, err = j.Forks(ctx, a.Name)
	}
	if err == nil {
		err = j.peer.Adopt(ctx, t)
	}
	switch {
	case errors.As(err, &passed):
		return record.MovePause, j.stamp.Commit(ctx, raiseTaken{of: a, above: passed.Seen})
	case errors.Is(err, ErrRewinds):
		return record.MovePause, j.stamp.Commit(ctx, rewindTaken{of: a})
	case errors.Is(err, ErrDiverged):
		return 0, errors.Join(err, j.stamp.Commit(ctx, divergedTaken{a}))
	case err != nil:
		return 0, err
	}
	return 0, j.endTaken(ctx, a)
}

// endTaken ends the operation of an account that this location has taken, and before that the streams of its own former
// epochs: the location that it followed last had all of them, and Adopt with Opened may not have come from there.
func (j *Rejoiner) endTaken(ctx context.Context, a catalog.Account) error {
	if err := j.stamp.End(ctx, j.stamp.Route().Everywhere(a.Name), a.Name, a.GeoEpoch()); err != nil {
		return err
	}
	return j.stamp.Commit(ctx, record.Finish{Of: a})
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

// Reclaims implements ranges.Reclaimer: see record.Finish.
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

// Reclaims implements ranges.Reclaimer: see record.Finish.
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
