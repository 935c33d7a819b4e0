package rejoin

import (
	"context"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// Accounts is the catalog of the location, with its cache.
type Accounts interface {
	// Account reads an account. It returns AccountNotFound if the account does not exist or is not complete. The result
	// is shared and must not be changed.
	Account(ctx context.Context, name geo.Account) (*catalog.Account, error)
	// List lists the accounts, complete or not, that keep returns true for. They are shared, too.
	List(ctx context.Context, keep func(*catalog.Account) bool) ([]*catalog.Account, error)
}

// Peer is the other location, as it takes part in a rejoining.
type Peer interface {
	// Adopt has the peer agree that the primary of an account is here, which was the primary's own: see Rejoiner.Adopt.
	Adopt(ctx context.Context, t Taken) error
	// Rejoin has the peer open the gates of an account again that it was the primary of: see Rejoiner.Rejoin.
	Rejoin(ctx context.Context, a catalog.Account) error
	// LostRows returns a page of the rows of a range that lost changes of the account have changed at the peer.
	LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from LostRow) (LostRows, error)
}

// Images numbers rows of accounts; package primary implements it.
type Images interface {
	// StepImage commits the next step of the image of an account in a range, and reports how far it is. bytesMax bounds
	// it, 0 is no bound but its own.
	StepImage(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, bytesMax uint64) (ranges.ImageStep, error)
	// Rewind numbers rows of an account once more, as they are in the range. bytes are those of the rows, payload included. It
	// ends once these are bytesMax, if that is not 0; done is how many rows it has numbered.
	Rewind(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, keys [][]byte, bytesMax uint64) (done int, bytes uint64, err error)
}

// Options are what a Rejoiner needs besides its peer and images. All are required.
type Options struct {
	Stamp    *record.Store
	Other    geo.Location
	Accounts Accounts
	// Moved is called after a step of a failover that was committed here.
	Moved func(step record.MoveStep, a *catalog.Account, reason string)
	// Claim has the witness know of the epoch of an account that was taken without it (R21).
	Claim func(ctx context.Context, a catalog.Account) error
}

// Rejoiner has former primaries of accounts rejoin, at either location. Methods may be called concurrently, those that set
// something only before all others.
type Rejoiner struct {
	stamp    *record.Store
	other    geo.Location
	accounts Accounts
	moved    func(record.MoveStep, *catalog.Account, string)
	claim    func(context.Context, catalog.Account) error
	peer     Peer
	images   Images
	// rate is that of a bootstrap that begins again after a recovery with loss.
	rate uint64
}

// New returns a Rejoiner. SetPeer must follow, and SetImages where accounts are rewound.
func New(o Options) *Rejoiner {
	return &Rejoiner{stamp: o.Stamp, other: o.Other, accounts: o.Accounts, moved: o.Moved, claim: o.Claim}
}

// SetPeer sets the other location.
func (j *Rejoiner) SetPeer(p Peer) { j.peer = p }

// SetImages sets what numbers rows.
func (j *Rejoiner) SetImages(i Images) { j.images = i }

// SetRate sets the rate of bootstraps that begin again after a recovery with loss, 0 for no bound.
func (j *Rejoiner) SetRate(rate uint64) { j.rate = rate }
