package directory

import (
	"context"
	"sync/atomic"
	"time"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bootstrap"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Peer is the directory of the other location, reached over the link.
type Peer interface {
	bootstrap.Peer
	planned.Peer
	rejoin.Peer

	// Reserve commits the record of a creation, and its gates, at the peer, which becomes the
	// secondary of the account. A second call for the same creation succeeds, too. Errors:
	// AccountAlreadyExists; PassedError, which says above what the epoch must be.
	Reserve(ctx context.Context, a catalog.Account) error
}

// Directory knows the accounts of one location. Methods may be called concurrently.
type Directory struct {
	stamp      *record.Store
	peer       Peer
	rejoin     *rejoin.Rejoiner
	promoter   *unplanned.Promoter
	mover      *planned.Mover
	copier     *bootstrap.Copier
	other      geo.Location
	accounts   catalog.Cache[catalog.Account]
	containers catalog.Containers
	properties catalog.PropertiesCache
	index      *index
	// idle is the version of the catalog at which Resume has found nothing to do; 0 before.
	idle    atomic.Uint64
	waits   record.Waits
	endings endings
	clock   clock.Clock
	onMove  func(record.Moved)
	// rate is that of a bootstrap that is begun without one.
	rate uint64
	// life is how long a reservation holds.
	life time.Duration
	// wait is clock.Wait: how a call pauses that waits for the other location. within is context.WithTimeout: how long
	// it waits at most.
	wait   func(context.Context, time.Duration) error
	within func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

// NewDirectory returns the directory of a stamp. SetPeer must follow.
func NewDirectory(s record.Stamp, other geo.Location) *Directory {
	d := &Directory{
		stamp: &record.Store{Stamp: &batch.Shared{Stamp: s}}, index: newIndex(), other: other, life: reservationLife, wait: clock.Wait, within: context.WithTimeout, clock: clock.System{},
		onMove: func(record.Moved) {},
	}
	d.rejoin = rejoin.New(rejoin.Options{
		Stamp: d.stamp, Other: other, Accounts: d, Moved: d.moved,
		Claim: func(ctx context.Context, a catalog.Account) error { return d.promoter.ClaimTaken(ctx, a) },
	})
	d.promoter = unplanned.New(unplanned.Options{Stamp: d.stamp, Accounts: d, Taken: d.rejoin, Waits: &d.waits, Moved: d.moved})
	d.mover = planned.New(planned.Options{Stamp: d.stamp, Other: other, Accounts: d, Rejoiner: d.rejoin, Moved: d.moved})
	d.copier = bootstrap.New(d.stamp, d)
	return d
}

// SetPeer sets the directory of the other location.
func (d *Directory) SetPeer(p Peer) {
	d.peer = p
	d.rejoin.SetPeer(p)
	d.mover.SetPeer(p)
	d.copier.SetPeer(p)
}

// SetImages sets what makes images. It is needed where accounts are bootstrapped.
func (d *Directory) SetImages(i bootstrap.Images) {
	d.copier.SetImages(i)
	d.rejoin.SetImages(i)
}

// Copier is what copies accounts to new secondaries, and keeps what only a copy has.
func (d *Directory) Copier() *bootstrap.Copier { return d.copier }

// Prepare implements Peer at the secondary of an account: see bootstrap.Copier.Prepare.
func (d *Directory) Prepare(ctx context.Context, a catalog.Account) error {
	return d.copier.Prepare(ctx, a)
}

// Mover is what moves accounts from this location to the other one, and takes those that move here.
func (d *Directory) Mover() *planned.Mover { return d.mover }

// Offer implements Peer at the secondary of an account: see planned.Mover.Offer.
func (d *Directory) Offer(ctx context.Context, o planned.Offer) (*catalog.Account, error) {
	return d.mover.Offer(ctx, o)
}

// Refuse implements Peer at the secondary of an account: see planned.Mover.Refuse.
func (d *Directory) Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	return d.mover.Refuse(ctx, a)
}

// Promoter is what makes this location the primary of accounts without asking the other one.
func (d *Directory) Promoter() *unplanned.Promoter { return d.promoter }

// Rejoiner is what has former primaries of accounts rejoin at this location.
func (d *Directory) Rejoiner() *rejoin.Rejoiner { return d.rejoin }

// Adopt implements Peer at the former primary of an account: see rejoin.Rejoiner.Adopt.
func (d *Directory) Adopt(ctx context.Context, t rejoin.Taken) error { return d.rejoin.Adopt(ctx, t) }

// Rejoin implements Peer at the former primary of an account: see rejoin.Rejoiner.Rejoin.
func (d *Directory) Rejoin(ctx context.Context, a catalog.Account) error {
	return d.rejoin.Rejoin(ctx, a)
}

// LostRows implements Peer at the former primary of an account: see rejoin.Rejoiner.LostRows.
func (d *Directory) LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from rejoin.LostRow) (rejoin.LostRows, error) {
	return d.rejoin.LostRows(ctx, a, r, from)
}

// SetPace sets the clock that paces bootstraps, in place of the system's, and the rate of those that are begun without
// one, 0 for no bound.
func (d *Directory) SetPace(c clock.Clock, rate uint64) {
	d.clock, d.rate = c, rate
	d.rejoin.SetRate(rate)
	d.promoter.SetClock(c)
	d.mover.SetClock(c)
	d.copier.SetClock(c)
}

// SetTime sets how calls let time pass, in place of clock.Wait and context.WithTimeout.
func (d *Directory) SetTime(
	wait func(context.Context, time.Duration) error, within func(context.Context, time.Duration) (context.Context, context.CancelFunc),
) {
	d.wait, d.within = wait, within
	d.promoter.SetWithin(within)
	d.mover.SetTime(wait, within)
}

// Account reads an account from this location's catalog. It returns AccountNotFound if the account
// does not exist or is not complete. The result is shared and must not be changed.
func (d *Directory) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	a, _, _, err := d.Resolve(ctx, name, 0, func(*catalog.Account) string { return "" })
	return a, err
}

// Resolve is Account, and also looks up a container and the CORS rules of the service in the same read of the
// catalog: the container that container returns for the account. If it returns no name, found is nil.
// container may be called more than once; the last call counts. No service has no rules.
//
// The rows need not be of one state. The container is read last, so it is never older than the account; one of a
// copy that was deleted between the reads is not reported as missing (R17).
func (d *Directory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (a *catalog.Account, found *catalog.Found, rules []catalog.CORSRule, err error) {
	err = d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(state ranges.State) (err error) {
		for range 2 {
			a, err = d.account(state, name)
			if found = nil; err != nil {
				return err
			}
			if rules, err = d.rules(state, s, name); err != nil {
				return err
			}
			name := container(a)
			if name == "" {
				return nil
			}
			found = &catalog.Found{}
			found.Container, found.Err = d.containers.Get(state, s, a.Name, name)
			if a.Primary == d.stamp.Location() || !state.Left(a.Name, a.GeoEpoch()) {
				return nil
			}
			// The copy was deleted meanwhile, containers included: the account's record is another one.
		}
		return kv.ErrBusy
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return a, found, rules, nil
}

func (d *Directory) rules(state ranges.State, s geo.Service, a geo.Account) ([]catalog.CORSRule, error) {
	if s == 0 {
		return nil, nil
	}
	p, err := d.properties.Get(state, s, a)
	if err != nil {
		return nil, err
	}
	return p.CORS, nil
}

func (d *Directory) account(s ranges.State, name geo.Account) (*catalog.Account, error) {
	a, err := d.AccountIn(s, name)
	if err == nil && (a == nil || !a.Active) {
		err = storageerr.AccountNotFound
	}
	return a, err
}

// Containers returns the cache of containers that Resolve uses, for other readers of this
// location's catalog.
func (d *Directory) Containers() *catalog.Containers { return &d.containers }

// Accounts lists the complete accounts of this location by name. They are shared and must not be changed.
func (d *Directory) Accounts(ctx context.Context) ([]*catalog.Account, error) {
	return d.List(ctx, func(a *catalog.Account) bool { return a.Active })
}

// List lists the accounts of the catalog that keep returns true for. Only the snapshot is taken
// under the lease (R5); the walk may take until ctx ends.
func (d *Directory) List(ctx context.Context, keep func(*catalog.Account) bool) (out []*catalog.Account, err error) {
	err = d.each(ctx, func(kv.Snapshot) error { return nil }, func(i *indexed) {
		if keep(i.account) {
			out = append(out, i.account)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// AccountIn reads an account, complete or not, from a state of the catalog: nil if there is none. It is shared and must not be
// changed.
func (d *Directory) AccountIn(s kv.Versioned, name geo.Account) (*catalog.Account, error) {
	return d.accounts.Get(s, catalog.AccountPartition(name).Append(make([]byte, 0, 64)), catalog.ParseAccount)
}

// Reserve implements Peer at the secondary location.
func (d *Directory) Reserve(ctx context.Context, a catalog.Account) error {
	if err := d.stamp.Commit(ctx, reserve{a}); err != nil {
		return err
	}
	return record.SetGates(ctx, d.stamp, a.Name, record.SecondaryGate(&a), 0, record.Once)
}
