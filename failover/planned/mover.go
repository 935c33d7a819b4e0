package planned

import (
	"context"
	"time"

	"antipode/directory/record"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

// Accounts is the catalog of the location, with its cache.
type Accounts interface {
	// Account reads an account. It returns AccountNotFound if the account does not exist or is not complete. The result
	// is shared and must not be changed.
	Account(ctx context.Context, name geo.Account) (*catalog.Account, error)
}

// Peer is the other location, as it takes part in a move.
type Peer interface {
	// Announce has the peer agree with an account whose primary is here. Of one without a secondary it
	// stores the record there and closes the gates, which are idempotent; after nil both are
	// committed, and if the account has left its secondary, the deletion of the copy, too. Of one with a
	// secondary it changes nothing: nil means that the record has arrived.
	Announce(ctx context.Context, a catalog.Account) error
	// Offer has the peer take an account whose primary is here (R19). It returns the record there, of the epoch that is
	// offered; a second call does too. Errors under which the account may still be taken: PassedError, which says above
	// what the epoch must be; ServerBusy, the peer has not applied everything; any other.
	Offer(ctx context.Context, o Offer) (*catalog.Account, error)
	// Refuse has the peer refuse an offer for ever, however late it comes. If it has taken the account, Refuse returns the
	// record there.
	Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error)
}

// Options are what a Mover needs besides its peer. All are required.
type Options struct {
	Stamp    *record.Store
	Other    geo.Location
	Accounts Accounts
	Rejoiner *rejoin.Rejoiner
	// Moved is called after a step of a failover that was committed here.
	Moved func(step record.MoveStep, a *catalog.Account, reason string)
}

// Mover moves accounts from this location to the other one, and takes those that move here. Methods may be called
// concurrently, those that set something only before all others.
type Mover struct {
	stamp    *record.Store
	other    geo.Location
	accounts Accounts
	rejoin   *rejoin.Rejoiner
	moved    func(record.MoveStep, *catalog.Account, string)
	peer     Peer
	clock    clock.Clock
	// received returns the greatest time that the other location has committed of a range here; nil where nobody asks that.
	received func(context.Context, geo.RangeID) (geo.Timestamp, error)
	// wait is how a call pauses that waits for the other location. within is how long it waits at most.
	wait   func(context.Context, time.Duration) error
	within func(context.Context, time.Duration) (context.Context, context.CancelFunc)

	answering  answering
	marks      marks
	receptions receptions
}

// New returns a Mover with the clock of the system. SetPeer must follow.
func New(o Options) *Mover {
	return &Mover{
		stamp: o.Stamp, other: o.Other, accounts: o.Accounts, rejoin: o.Rejoiner, moved: o.Moved,
		clock: clock.System{}, wait: clock.Wait, within: context.WithTimeout,
	}
}

// SetPeer sets the other location.
func (mv *Mover) SetPeer(p Peer) { mv.peer = p }

// SetClock sets the clock, in place of the system's.
func (mv *Mover) SetClock(c clock.Clock) { mv.clock = c }

// SetTime sets how calls let time pass, in place of clock.Wait and context.WithTimeout.
func (mv *Mover) SetTime(
	wait func(context.Context, time.Duration) error, within func(context.Context, time.Duration) (context.Context, context.CancelFunc),
) {
	mv.wait, mv.within = wait, within
}

// SetReceived sets what asks the other location up to what time it has committed a range here: see pair.End.Received. Without
// it a move knows of its streams by what is acknowledged alone.
func (mv *Mover) SetReceived(f func(context.Context, geo.RangeID) (geo.Timestamp, error)) {
	mv.received = f
}
