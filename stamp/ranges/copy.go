package ranges

import (
	"context"

	"antipode/geo"
	"antipode/stamp/kv"
)

// OfCopy reads the copy that a secondary has of an account in an epoch. Once a range has the gate of a later epoch, whose
// group deletes what the range had of the account (R17), its reads are kv.ErrBusy: else a read that was under way
// would find nothing, and say so.
type OfCopy struct {
	Reader

	Account geo.Account
	Epoch   geo.Epoch
}

// Read implements Reader.
func (c OfCopy) Read(ctx context.Context, r geo.RangeID, f func(State) error) error {
	return c.Reader.Read(ctx, r, func(s State) error {
		err := f(s)
		if s.Left(c.Account, c.Epoch) {
			return kv.ErrBusy
		}
		return err
	})
}

// Left reports whether the range has left an account's epoch for a later one. What was read before the call, and
// did not see the group with the gate of that, is of the epoch.
func (s State) Left(a geo.Account, e geo.Epoch) bool { return s.Gate(a).Epoch.Compare(e) > 0 }
