package bootstrap

import (
	"context"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/verify"
	"antipode/services/catalog"
)

// Accounts is the catalog of the location, with its cache.
type Accounts interface {
	// Account reads an account. It returns AccountNotFound if the account does not exist or is not complete. The result
	// is shared and must not be changed.
	Account(ctx context.Context, name geo.Account) (*catalog.Account, error)
}

// Peer is the other location, which gets the copy.
type Peer interface {
	// Prepare has the peer begin its copy of an account whose primary is here: it deletes what it has of
	// former epochs and opens the gates of the account's. A second call deletes nothing. Errors:
	// AccountAlreadyExists; PassedError, which says above what the epoch must be.
	Prepare(ctx context.Context, a catalog.Account) error
}

// Copier copies accounts from this location to new secondaries, and prepares the copies that begin here. Methods may be
// called concurrently, those that set something only before all others.
type Copier struct {
	stamp    *record.Store
	accounts Accounts
	peer     Peer
	images   Images
	// farRows are the rows of the other location: nil where nothing is kept of a copy that is deleted.
	farRows verify.Peer
	clock   clock.Clock

	counts   counts
	paces    paces
	salvages salvages
}

// New returns a Copier with the clock of the system. SetPeer must follow, and SetImages where accounts are copied.
func New(s *record.Store, accounts Accounts) *Copier {
	return &Copier{stamp: s, accounts: accounts, clock: clock.System{}}
}

// SetPeer sets the other location.
func (cp *Copier) SetPeer(p Peer) { cp.peer = p }

// SetImages sets what makes images.
func (cp *Copier) SetImages(i Images) { cp.images = i }

// SetClock sets the clock that paces copies, in place of the system's.
func (cp *Copier) SetClock(c clock.Clock) { cp.clock = c }
