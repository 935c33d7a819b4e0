package failover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Stamp is the stamp of this location.
type Stamp interface {
	Location() geo.Location
	Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error
	Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error
}

// Peer is the directory of the other location, reached over the link.
type Peer interface {
	// Reserve commits the account as one whose secondary is there, its gates
	// included. It is answered again for the same account.
	Reserve(ctx context.Context, a catalog.Account) error
}

// Directory knows the accounts of one location. Methods may be called concurrently.
type Directory struct {
	stamp Stamp
	peer  Peer
	other geo.Location
	cache catalog.Cache[catalog.Account]
}

// NewDirectory returns the directory of a stamp. SetPeer must follow.
func NewDirectory(s Stamp, other geo.Location) *Directory {
	return &Directory{stamp: s, other: other}
}

// SetPeer tells the directory of its peer.
func (d *Directory) SetPeer(p Peer) { d.peer = p }

// Account reads an account, as of now at this location. AccountNotFound where there
// is none or it is not complete. The result is shared and not to be changed.
func (d *Directory) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	var out *catalog.Account
	err := d.stamp.Read(ctx, geo.FirstRange(geo.Catalog), func(s ranges.State) (err error) {
		out, err = d.cache.Get(s, catalog.AccountPartition(name).Append(make([]byte, 0, 64)), catalog.ParseAccount)
		if err == nil && (out == nil || !out.Active) {
			err = storageerr.AccountNotFound
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Accounts lists the complete accounts of this location by name. The lease covers only
// that the snapshot is taken (R5): the walk may take as long as ctx lets it.
func (d *Directory) Accounts(ctx context.Context) ([]*catalog.Account, error) {
	var snap snapshot
	err := d.stamp.Read(ctx, geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		old := snap
		snap = s.Snapshot()
		if old != nil { // The lease had run out: this is a later moment.
			return old.Close()
		}
		return nil
	})
	var out []*catalog.Account
	if err == nil {
		out, err = catalog.Accounts(ctx, snap)
	}
	if snap != nil {
		err = errors.Join(err, snap.Close())
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(a *catalog.Account) bool { return !a.Active }), nil
}

// snapshot is what ranges.State.Snapshot returns.
type snapshot interface {
	kv.Reader
	Close() error
}

// keyLen is the length of an account key in bytes (spec/auth.md 4).
const keyLen = 64

// Create makes an RA-GRS account whose primary is this location. Absent keys are
// drawn. Errors: AccountAlreadyExists; ServerBusy where the other location cannot
// reserve the name, and a second call then goes on from there.
func (d *Directory) Create(ctx context.Context, name geo.Account, key1, key2 []byte) (*catalog.Account, error) {
	if !name.Valid() {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("%q is no account name: 3 to 24 lower-case letters and digits", name))
	}
	for _, k := range []*[]byte{&key1, &key2} {
		if len(*k) == 0 {
			*k = make([]byte, keyLen)
			if _, err := rand.Read(*k); err != nil {
				return nil, err
			}
		}
	}
	here := d.stamp.Location()
	put := &putAccount{want: catalog.Account{
		Name: name, Key1: key1, Key2: key2, Redundancy: catalog.RAGRS, Primary: here, Secondary: d.other, Epoch: 1,
	}}
	if err := d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), put); err != nil {
		return nil, err
	}
	a := put.stored
	if err := d.peer.Reserve(ctx, a); err != nil {
		if _, ours := storageerr.Of(err); ours {
			return nil, err
		}
		return nil, storageerr.ServerBusy.Saying(fmt.Sprintf("account %s cannot be reserved at %s (%v); try again", name, d.other, err))
	}
	gate := change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true}
	if err := SetGate(ctx, d.stamp, name, gate); err != nil {
		return nil, err
	}
	done := &activate{name: name}
	if err := d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), done); err != nil {
		return nil, err
	}
	return &done.stored, nil
}

// Reserve implements Peer at this end.
func (d *Directory) Reserve(ctx context.Context, a catalog.Account) error {
	if err := d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), &putAccount{want: a, reserve: true}); err != nil {
		return err
	}
	return SetGate(ctx, d.stamp, a.Name, change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true})
}

// putAccount stores an account that is not complete yet. It has no gate, so the
// change has no number and is not shipped.
type putAccount struct {
	want    catalog.Account
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
		c.stored = *old // A creation that stopped half way goes on with its own keys.
		return nil
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

// activate marks an account complete, in a change that travels to the other location.
type activate struct {
	name   geo.Account
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *activate) Evaluate(tx *ranges.Tx) error {
	a, err := catalog.GetAccount(tx, c.name)
	if err != nil {
		return err
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
