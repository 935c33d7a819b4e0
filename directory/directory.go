package directory

import (
	"context"
	"errors"
	"slices"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Submitter
	ranges.Reader
	Location() geo.Location
}

// Peer is the directory of the other location, reached over the link.
type Peer interface {
	// Reserve commits the account and its gates at the peer, which is its secondary. A
	// second call for the same account succeeds, too.
	Reserve(ctx context.Context, a catalog.Account) error
}

// Directory knows the accounts of one location. Methods may be called concurrently.
type Directory struct {
	stamp      Stamp
	peer       Peer
	other      geo.Location
	accounts   catalog.Cache[catalog.Account]
	containers catalog.Containers
}

// NewDirectory returns the directory of a stamp. SetPeer must follow.
func NewDirectory(s Stamp, other geo.Location) *Directory {
	return &Directory{stamp: s, other: other}
}

// SetPeer sets the directory of the other location.
func (d *Directory) SetPeer(p Peer) { d.peer = p }

// Account reads an account from this location's catalog. It returns AccountNotFound if the account
// does not exist or is not complete. The result is shared and must not be changed.
func (d *Directory) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	a, _, err := d.Resolve(ctx, name, 0, func(*catalog.Account) string { return "" })
	return a, err
}

// Resolve is Account, and also looks up a container of the service in the same read of the
// catalog: the one that container returns for the account. If it returns no name, found is nil.
// container may be called more than once; the last call counts.
//
// The two rows need not be of one state: no rule connects them. The container is read second,
// so it is never older than the account.
func (d *Directory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (a *catalog.Account, found *catalog.Found, err error) {
	err = d.stamp.Read(ctx, geo.FirstRange(geo.Catalog), func(state ranges.State) (err error) {
		a, err = d.account(state, name)
		if found = nil; err != nil {
			return err
		}
		if name := container(a); name != "" {
			found = &catalog.Found{}
			found.Container, found.Err = d.containers.Get(state, s, a.Name, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return a, found, nil
}

func (d *Directory) account(s ranges.State, name geo.Account) (*catalog.Account, error) {
	a, err := d.accounts.Get(s, catalog.AccountPartition(name).Append(make([]byte, 0, 64)), catalog.ParseAccount)
	if err == nil && (a == nil || !a.Active) {
		err = storageerr.AccountNotFound
	}
	return a, err
}

// Containers returns the cache of containers that Resolve uses, for other readers of this
// location's catalog.
func (d *Directory) Containers() *catalog.Containers { return &d.containers }

// Accounts lists the complete accounts of this location by name. Only the snapshot is taken under
// the lease (R5); the walk may take until ctx ends.
func (d *Directory) Accounts(ctx context.Context) ([]*catalog.Account, error) {
	snap, err := ranges.Snapshot(ctx, d.stamp, geo.FirstRange(geo.Catalog))
	if err != nil {
		return nil, err
	}
	out, err := catalog.Accounts(ctx, snap)
	if err = errors.Join(err, snap.Close()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(a *catalog.Account) bool { return !a.Active }), nil
}

// Reserve implements Peer at the secondary location.
func (d *Directory) Reserve(ctx context.Context, a catalog.Account) error {
	if err := d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), &putAccount{want: a, reserve: true}); err != nil {
		return err
	}
	return setGates(ctx, d.stamp, a.Name, change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}, once)
}

// putAccount stores an account that is not complete yet. The account has no gate, so the change
// has no number and is not shipped.
type putAccount struct {
	want catalog.Account
	// given are the keys that the caller chose; the other keys of want are random.
	given   keyPair
	reserve bool
	stored  catalog.Account
}

// Evaluate implements ranges.Command.
func (c *putAccount) Evaluate(tx *ranges.Tx) error {
	old, err := catalog.GetAccount(tx, c.want.Name)
	switch {
	case err == nil && (old.Primary != c.want.Primary || old.Active && !c.reserve):
		return storageerr.AccountAlreadyExists
	case err == nil:
		return c.resume(tx, old)
	case !errors.Is(err, storageerr.AccountNotFound):
		return err
	}
	at := tx.Timestamp(0)
	c.stored = c.want
	if c.stored.Created == 0 {
		c.stored.Created = at
	}
	return stage(tx, &c.stored, at)
}

// resume continues a creation that stopped half way. It keeps the stored keys except those that
// are given now: the account could not be used yet. A reservation changes nothing, because the
// record arrives there when the account is complete.
func (c *putAccount) resume(tx *ranges.Tx, old *catalog.Account) error {
	c.stored = *old
	c.stored.Key1, c.stored.Key2 = c.given.over(old)
	if c.reserve || c.given.missing(old) == "" {
		c.stored = *old
		return nil
	}
	return stage(tx, &c.stored, tx.Timestamp(old.Created))
}

// activate marks an account complete, in a change that is shipped to the other location.
type activate struct {
	name   geo.Account
	given  keyPair
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *activate) Evaluate(tx *ranges.Tx) error {
	a, err := catalog.GetAccount(tx, c.name)
	if err != nil {
		return err
	}
	if err := c.given.check(a); err != nil {
		return err // Another creation of the name came in between, with other keys.
	}
	c.stored = *a
	if a.Active {
		return nil
	}
	c.stored.Active = true
	return stage(tx, &c.stored, tx.Timestamp(a.Created))
}

func stage(tx *ranges.Tx, a *catalog.Account, at geo.Timestamp) error {
	v, err := a.Encode()
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(a.Name)
	return tx.Change(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
}
