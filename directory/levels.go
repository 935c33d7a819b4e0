package directory

import (
	"context"
	"errors"

	"antipode/directory/record"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// RaiseLevels raises the feature levels of the location, which its catalog keeps. Whether all nodes of both locations know
// them is for the caller to see: see feature.Gate.
func (d *Directory) RaiseLevels(ctx context.Context, to change.Levels) error {
	return d.stamp.Submit(ctx, d.stamp.Route().Catalog(), raiseLevels(to))
}

// raiseLevels is the command of RaiseLevels.
type raiseLevels change.Levels

// Evaluate implements ranges.Command.
func (c raiseLevels) Evaluate(tx *ranges.Tx) error {
	if c.Active > max(c.Floor, tx.Levels().Floor) {
		return errors.Join(record.ErrCommand, errors.New("the active level is above the floor"))
	}
	return tx.RaiseLevels(change.Levels(c))
}

// Reclaims implements ranges.Reclaimer: it takes no room worth counting.
func (raiseLevels) Reclaims() {}

// kindRaiseLevels is the kind of raiseLevels. It is on the wire: never rename it.
const kindRaiseLevels = "directory.raiseLevels"

// Kind implements ranges.Portable.
func (raiseLevels) Kind() string { return kindRaiseLevels }

// Encode implements ranges.Portable.
func (c raiseLevels) Encode() []byte { return change.AppendLevels(nil, change.Levels(c)) }

func parseRaiseLevels(b []byte) (raiseLevels, error) {
	l, err := change.ParseLevels(b)
	if err != nil {
		return raiseLevels{}, errors.Join(record.ErrCommand, err)
	}
	return raiseLevels(l), nil
}

// EncodeResult implements ranges.Portable.
func (raiseLevels) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (raiseLevels) DecodeResult([]byte) error { return nil }
