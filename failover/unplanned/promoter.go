package unplanned

import (
	"context"
	"time"

	"antipode/directory/record"
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

// Taken is what follows the commit of a promotion; rejoin.Rejoiner implements it.
type Taken interface {
	// OpenGates sets the gates of an account that this location has taken, in all ranges but the catalog.
	OpenGates(ctx context.Context, a catalog.Account) error
	// Forks returns the fork records of an account in the catalog.
	Forks(ctx context.Context, name geo.Account) ([]catalog.Fork, error)
}

// Options are what a Promoter needs. All are required.
type Options struct {
	Stamp    *record.Store
	Accounts Accounts
	Taken    Taken
	// Waits are why operations could not go on when they were tried last.
	Waits *record.Waits
	// Moved is called after a step of a failover that was committed here.
	Moved func(step record.MoveStep, a *catalog.Account, reason string)
}

// Promoter makes this location the primary of accounts whose copy is here. Methods may be called concurrently, those that
// set something only before all others.
type Promoter struct {
	stamp    *record.Store
	accounts Accounts
	taken    Taken
	waits    *record.Waits
	moved    func(record.MoveStep, *catalog.Account, string)
	claims   Claims // nil without a witness
	// heldBack reports whether something of an account that is secondary here has arrived and waits for the clock.
	heldBack func(*catalog.Account) bool
	times    Times
	clock    clock.Clock
	within   func(context.Context, time.Duration) (context.Context, context.CancelFunc)

	registered registrations
	rests      rests
}

// New returns a Promoter with the clock of the system.
func New(o Options) *Promoter {
	return &Promoter{
		stamp: o.Stamp, accounts: o.Accounts, taken: o.Taken, waits: o.Waits, moved: o.Moved,
		heldBack: func(*catalog.Account) bool { return false }, times: promotionTimes(),
		clock: clock.System{}, within: context.WithTimeout,
	}
}

// SetClock sets the clock, in place of the system's.
func (u *Promoter) SetClock(c clock.Clock) { u.clock = c }

// SetWithin sets how long a call waits at most, in place of context.WithTimeout.
func (u *Promoter) SetWithin(within func(context.Context, time.Duration) (context.Context, context.CancelFunc)) {
	u.within = within
}

// SetClaims sets the witness of both locations (R21). Without it a promotion claims nothing.
func (u *Promoter) SetClaims(c Claims) { u.claims = c }

// SetHeldBack sets what reports whether something of an account that is secondary here has arrived and waits, or waited some
// seconds ago, for the clock (R6). It is called from any goroutine. Without it nothing does.
func (u *Promoter) SetHeldBack(f func(*catalog.Account) bool) { u.heldBack = f }
