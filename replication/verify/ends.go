package verify

import (
	"context"

	"antipode/geo"
	"antipode/internal/clock"
)

// Ends returns how far the lanes of an account are in a range, as one location has them: the heads of the
// location that numbers the streams (source), or the cursors of the other one. A lane without a record is zero.
func Ends(ctx context.Context, at Peer, r geo.RangeID, a geo.Account, epoch geo.Epoch, source bool) ([geo.LaneCount]LaneHead, error) {
	e := &end{peer: at, rng: r, wait: clock.Wait}
	err := e.open(ctx, Question{Account: a, Epoch: epoch, Source: source})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	e.close(ctx)
	return e.heads, err
}
