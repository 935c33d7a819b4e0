package directory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/stamptest"
)

// pair is two locations and the link between their directories.
type pair struct {
	north, south *directory.Directory
	// cut refuses calls; lost carries them out and loses the answers.
	cut, lost bool
	// onCall, if it is not nil, is called instead of the other location, which does not answer: the context of the call ends.
	onCall func()
}

var errLink = errors.New("the link is cut")

// linked is the directory of the other location over the link of a pair.
type linked struct {
	p   *pair
	far *directory.Directory
}

func (l linked) Reserve(ctx context.Context, a catalog.Account) error {
	return l.call(func() error { return l.far.Reserve(ctx, a) })
}

func (l linked) Announce(ctx context.Context, a catalog.Account) error {
	if l.p.onCall != nil {
		l.p.onCall()
		<-ctx.Done()
		return ctx.Err()
	}
	return l.call(func() error { return l.far.Announce(ctx, a) })
}

func (l linked) Prepare(ctx context.Context, a catalog.Account) error {
	return l.call(func() error { return l.far.Prepare(ctx, a) })
}

func (l linked) Offer(ctx context.Context, o planned.Offer) (a *catalog.Account, err error) {
	err = l.call(func() (err error) {
		a, err = l.far.Offer(ctx, o)
		return err
	})
	return a, err
}

func (l linked) Refuse(ctx context.Context, of catalog.Account) (a *catalog.Account, err error) {
	err = l.call(func() (err error) {
		a, err = l.far.Refuse(ctx, of)
		return err
	})
	return a, err
}

func (l linked) Adopt(ctx context.Context, t rejoin.Taken) error {
	return l.call(func() error { return l.far.Adopt(ctx, t) })
}

func (l linked) Rejoin(ctx context.Context, a catalog.Account) error {
	return l.call(func() error { return l.far.Rejoin(ctx, a) })
}

func (l linked) LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from rejoin.LostRow) (out rejoin.LostRows, err error) {
	err = l.call(func() (err error) { out, err = l.far.LostRows(ctx, a, r, from); return err })
	return out, err
}

func (l linked) call(f func() error) error {
	if l.p.cut {
		return errLink
	}
	err := f()
	if l.p.lost {
		return errLink
	}
	return err
}

func newPair(t *testing.T) *pair {
	every := []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table}
	p := &pair{
		north: directory.NewDirectory(stamptest.New(t, "north", every...), "south"),
		south: directory.NewDirectory(stamptest.New(t, "south", every...), "north"),
	}
	p.north.SetPeer(linked{p, p.south})
	p.south.SetPeer(linked{p, p.north})
	return p
}

// One name is created at both locations while the link is cut: neither is complete. When the link
// is back, one more call makes the account, at either location (R8): the name is not burnt.
//
// Capability: Two locations: A name created at both locations is not burnt; its highest epoch outlives it (R8).
func TestNameCreatedAtBothLocations(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for name, again := range map[geo.Account]struct{ first, second *directory.Directory }{
		"northagain": {p.north, p.south}, "southagain": {p.south, p.north},
	} {
		p.cut = true
		for _, d := range []*directory.Directory{p.north, p.south} {
			_, err := d.Create(t.Context(), name, nil, nil)
			require.True(t, record.Passing(err), err)
		}
		p.cut = false
		a, err := again.first.Create(t.Context(), name, nil, nil)
		require.NoError(t, err)
		require.True(t, a.Active)
		_, err = again.second.Create(t.Context(), name, nil, nil)
		requireTaken(t, err)
	}
}

// A reservation whose creation was abandoned keeps its name from creations at its own location for
// a while. Then a creation takes the name over, with a higher epoch, and the abandoned one goes on
// no more (R7, R8).
func TestReservationIsTakenOver(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.lost = true
	_, err := p.north.Create(t.Context(), "acct", nil, nil)
	require.True(t, record.Passing(err), err)
	p.lost = false
	_, err = p.south.Create(t.Context(), "acct", nil, nil)
	requireTaken(t, err)
	require.ErrorContains(t, err, "account acct is being created at north:")

	p.south.SetLife(time.Nanosecond)
	a, err := p.south.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.GeoEpoch())
	_, err = p.north.Create(t.Context(), "acct", nil, nil)
	requireTaken(t, err)
}

// A reservation holds for an hour of the commit times of its location, which its evaluation reads.
func TestReservationLife(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Hour, directory.ReservationLife)
	p := newPair(t)
	p.lost = true
	_, err := p.north.Create(t.Context(), "acct", nil, nil)
	require.True(t, record.Passing(err), err)
	list, err := p.south.Incomplete(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NotZero(t, list[0].Reserved)
	list, err = p.north.Incomplete(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Zero(t, list[0].Reserved)
}

// A name that was freed keeps its highest epoch at both locations (R8): the next creation is above
// it, so that its gates replace the ones that are left, and a late call of the freed creation
// reserves nothing.
func TestR8FreedNameKeepsItsEpoch(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.lost = true
	_, err := p.north.Create(t.Context(), "acct", nil, nil)
	require.True(t, record.Passing(err), err)
	p.lost = false
	var late catalog.Account
	for _, d := range []*directory.Directory{p.north, p.south} {
		freed, err := d.Free(t.Context(), "acct")
		require.NoError(t, err)
		require.Equal(t, geo.Epoch{Number: 1, Location: "north"}, freed.GeoEpoch())
		late = *freed
		freed, err = d.Free(t.Context(), "acct")
		require.NoError(t, err)
		require.Nil(t, freed, "it is free")
		list, err := d.Incomplete(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
	}
	late.Reserved = 0
	var passed *record.PassedError
	require.ErrorAs(t, p.south.Reserve(t.Context(), late), &passed)
	require.Equal(t, geo.Epoch{Number: 1, Location: "north"}, passed.Seen)
	_, err = p.south.Account(t.Context(), "acct")
	require.ErrorIs(t, err, storageerr.AccountNotFound)

	a, err := p.south.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.GeoEpoch())
	requireTaken(t, p.south.Reserve(t.Context(), late))
	_, err = p.south.Free(t.Context(), "acct")
	requireTaken(t, err)
	require.ErrorContains(t, err, "account acct is complete, its primary is south")
}

// A location that lost what it knew of a name begins above what the other one knows (R8).
func TestR8EpochIsAboveThePeers(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for range 2 { // The north alone sees two epochs.
		p.cut = true
		_, err := p.north.Create(t.Context(), "acct", nil, nil)
		require.True(t, record.Passing(err), err)
		_, err = p.north.Free(t.Context(), "acct")
		require.NoError(t, err)
	}
	p.cut = false
	a, err := p.south.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 3, Location: "south"}, a.GeoEpoch())
}

func requireTaken(t require.TestingT, err error) {
	row, ours := storageerr.Of(err)
	require.True(t, ours, "%v", err)
	require.Equal(t, storageerr.AccountAlreadyExists.Code, row.Code, "%v", err)
}

// calls is a link.Caller and link.Handlers at once: the far end is in the same process.
type calls map[string]func(context.Context, []byte) ([]byte, error)

func (c calls) Handle(method string, f func(context.Context, []byte) ([]byte, error)) { c[method] = f }

func (c calls) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	return c[method](ctx, body)
}

// What a reservation is answered is the same over the network: done, the name is taken, or the
// epoch above which it may begin again.
func TestReserveOverTheNetwork(t *testing.T) {
	t.Parallel()
	p, c := newPair(t), calls{}
	directory.ServePeer(c, link.New(), p.south, nil)
	far := directory.NewRemotePeer(c)
	a := catalog.Account{Name: "acct", Redundancy: catalog.RAGRS, Primary: "north", Secondary: "south", Epoch: 3, Created: 5}
	require.NoError(t, far.Reserve(t.Context(), a))
	require.NoError(t, far.Reserve(t.Context(), a), "again")
	older := a
	older.Epoch, older.Created = 2, 4
	var passed *record.PassedError
	require.ErrorAs(t, far.Reserve(t.Context(), older), &passed)
	require.Equal(t, a.GeoEpoch(), passed.Seen)
	other := a
	other.Created = 6 // Another creation under the same epoch, which only a loss can make.
	require.ErrorAs(t, far.Reserve(t.Context(), other), &passed)

	p.south.SetLife(time.Nanosecond)
	_, err := p.south.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	a.Epoch = 9
	requireTaken(t, far.Reserve(t.Context(), a))
}
