package ranges

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// OfAccount reads what a location has of an account in an epoch: see OfPrimary, and OfCopy for its secondary.
func OfAccount(from Reader, a geo.Account, e geo.Epoch, secondary bool) Reader {
	if secondary {
		return OfCopy{Reader: from, Account: a, Epoch: e}
	}
	return OfPrimary{Reader: from, Account: a, Epoch: e}
}

// OfCopy reads the copy that a secondary has of an account in an epoch. A range without the open gate of that epoch has
// no part of the copy, and its reads are kv.ErrBusy. Once it has the gate of a later epoch, whose group may have deleted what
// the range had of the account (R17), a read that was under way would find nothing, and say so. It is ErrLeft: the location
// may have become the primary, and the request may look again where the copy is (R19). With that of a former one, or
// without any, it was recovered with loss (R4), and what it has is of a former copy, until its gates are compared (R7).
type OfCopy struct {
	Reader

	Account geo.Account
	Epoch   geo.Epoch
}

// Read implements Reader.
func (c OfCopy) Read(ctx context.Context, r geo.RangeID, f func(State) error) error {
	return c.Reader.Read(ctx, r, func(s State) error {
		if !c.held(s) {
			return c.unheld(s)
		}
		// A gate never goes back, so what was read between the two is of the epoch.
		err := f(s)
		if !c.held(s) {
			return c.unheld(s)
		}
		return err
	})
}

// unheld is why a range has no part of the copy.
func (c OfCopy) unheld(s State) error {
	g := s.Gate(c.Account)
	switch cmp := g.Epoch.Compare(c.Epoch); {
	case cmp > 0:
		return ErrLeft
	case cmp < 0 && g.Role == change.RolePrimary:
		return ErrComing
	}
	return kv.ErrBusy
}

// ErrComing ends a read of the copy of a former primary, whose catalog knows that it is the secondary now: the range is
// about to get the gate of that, unless it was recovered with loss (R19).
var ErrComing = fmt.Errorf("%w: the range has not followed the failover of the account yet", kv.ErrBusy)

// held reports whether a range has a part of the copy.
func (c OfCopy) held(s State) bool {
	g := s.Gate(c.Account)
	return g.Open && g.Epoch == c.Epoch
}

// ErrLeft ends a read of an epoch that the range has left: of a primary that is none any more, see OfPrimary, or of a copy.
var ErrLeft = fmt.Errorf("%w: the account has gone on in a later epoch", kv.ErrBusy)

// OfPrimary reads what the primary of an account has, for a request that found it the primary in an epoch. A location that
// has become the secondary since, in a later epoch, may be having its copy made again: a read that was under way would find
// nothing, and say so. It is ErrLeft, and the request may look again where the account is.
type OfPrimary struct {
	Reader

	Account geo.Account
	Epoch   geo.Epoch
}

// Read implements Reader.
func (p OfPrimary) Read(ctx context.Context, r geo.RangeID, f func(State) error) error {
	return p.Reader.Read(ctx, r, func(s State) error {
		err := f(s)
		if p.Left(s) { // A gate never goes back, and changes before what it stands for does.
			return ErrLeft
		}
		return err
	})
}

// Left reports whether a range has a later epoch of the account, whose primary is elsewhere.
func (p OfPrimary) Left(s State) bool {
	return s.Left(p.Account, p.Epoch) && s.Gate(p.Account).Role != change.RolePrimary
}

// Left reports whether the range has left an account's epoch for a later one. What was read before the call, and
// did not see the group with the gate of that, is of the epoch.
func (s State) Left(a geo.Account, e geo.Epoch) bool { return s.Gate(a).Epoch.Compare(e) > 0 }
