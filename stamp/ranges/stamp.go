package ranges

import (
	"context"

	"antipode/geo"
	"antipode/stamp/route"
)

// Routed knows which range of a stamp holds what.
type Routed interface {
	// Route returns the table of the stamp's ranges as they are now.
	Route() *route.Table
}

// Submitter commits commands in the ranges of a stamp, on whichever node a range is led.
type Submitter interface {
	// Submit waits until the effect is on every in-sync replica. Errors: the command's, under
	// which nothing changed; kv.ErrBusy, nothing happened; kv.ErrUnknown, it may have.
	Submit(ctx context.Context, r geo.RangeID, cmd Command) error
}

// Reader reads the ranges of a stamp, wherever those lead.
type Reader interface {
	// Read calls f with a state in which everything acknowledged before the call is seen. f may
	// run again: see Range.Read. Errors beside those of f: kv.ErrBusy, no leader answered.
	Read(ctx context.Context, r geo.RangeID, f func(State) error) error
}
