package record

import (
	"context"
	"errors"

	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// Again decides whether a step that failed with a Passing error is tried again: nil tries again,
// an error ends the creation. step names the step for people.
type Again func(ctx context.Context, step string, err error) error

// Once is an Again that never tries again.
func Once(_ context.Context, _ string, err error) error { return err }

// Passing reports whether a step that failed with err may succeed later: too few replicas, or not
// the other location, answer. The outcome may be unknown; all steps of a creation are
// idempotent.
func Passing(err error) bool {
	if row, ours := storageerr.Of(err); ours {
		return row.Code == storageerr.ServerBusy.Code || row.Code == storageerr.OperationTimedOut.Code
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ranges.ErrNotLeader)
}

// Try runs a step until it succeeds, fails with another error than Passing, or again gives up.
func Try(ctx context.Context, again Again, step string, f func() error) error {
	for {
		err := f()
		if err == nil || !Passing(err) {
			return err
		}
		if err := again(ctx, step, err); err != nil {
			return err
		}
	}
}
