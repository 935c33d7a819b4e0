package primary

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// inDoubt is a stamp whose commands take effect, and whose answers are late: nobody knows.
type inDoubt struct{ *stamp.Stamp }

// Submit implements ranges.Submitter.
func (s inDoubt) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	if err := s.Stamp.Submit(ctx, id, cmd); err != nil {
		return err
	}
	return kv.ErrUnknown
}

// R2: a command whose outcome is not known may be evaluated at any later moment: what it sets is not looked at.
func TestR2ResultsOfACommandInDoubt(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	w.set(w.partition("c", 1), "value", 1, 2, 3)
	w.gate(2, true)
	ctx := t.Context()
	require.NoError(t, w.primary.BeginImage(ctx, tableRange, "acct", w.epoch, change.ImageSize{Rows: 3}))
	doubt := New(inDoubt{w.stamp})

	size, next, err := doubt.CountRows(ctx, tableRange, "acct", nil)
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.Zero(t, size)
	require.Nil(t, next)
	step, err := doubt.StepImage(ctx, tableRange, "acct", w.epoch, 0)
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.Zero(t, step)
	outcomes, err := doubt.Take(ctx, &Take{Stream: geo.Stream{Account: "acct", Epoch: w.epoch, Range: tableRange.ID}, Units: make([]TakeUnit, 1)})
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.Nil(t, outcomes)
}
