package directory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// twiceStamp runs each query twice, as when the lease ended meanwhile. between is called in
// between; nil for nothing.
type twiceStamp struct {
	*stamp.Stamp
	between func()
}

func (s *twiceStamp) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	_ = s.Stamp.Read(ctx, r, f)
	if s.between != nil {
		s.between()
	}
	return s.Stamp.Read(ctx, r, f)
}

// peer is the directory of the other location. It reserves an account unless it is away.
type peer struct {
	directory.Peer
	away bool
}

func (p *peer) Reserve(context.Context, catalog.Account) error {
	if p.away {
		return errors.New("the link is cut")
	}
	return nil
}

func (p *peer) Announce(ctx context.Context, a catalog.Account) error { return p.Reserve(ctx, a) }

func (p *peer) Prepare(ctx context.Context, a catalog.Account) error { return p.Reserve(ctx, a) }

// An account whose creation has not ended is not found, neither by itself nor with a container nor
// in the list, until a second call completes it.
func TestIncompleteAccountIsNotFound(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d, other := directory.NewDirectory(s, "south"), &peer{away: true}
	d.SetPeer(other)
	_, err := d.Create(t.Context(), "acct", nil, nil)
	require.True(t, record.Passing(err), err)
	_, err = d.Account(t.Context(), "acct")
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	a, found, _, err := d.Resolve(t.Context(), "acct", geo.Table, func(*catalog.Account) string {
		t.Error("no container of an incomplete account is looked up")
		return "tbl"
	})
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	require.Nil(t, a)
	require.Nil(t, found)
	all, err := d.Accounts(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)

	other.away = false
	_, err = d.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	a, err = d.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, geo.Account("acct"), a.Name)
}

// What Resolve returns is what the last run of its query found, of the container that was asked for
// last.
func TestResolveReturnsTheLastRun(t *testing.T) {
	t.Parallel()
	s := &twiceStamp{Stamp: stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Queue, geo.Table)}
	d, writer := directory.NewDirectory(s, "south"), primary.New(s)
	d.SetPeer(&peer{})
	_, err := d.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	create := func(name string) {
		require.NoError(t, writer.Write(t.Context(), &catalog.Create{Service: geo.Table, Account: "acct", Name: name}))
	}
	create("First")
	create("Second")
	// resolve looks up one name in the first run and another one in the second.
	resolve := func(names ...string) *catalog.Found {
		_, found, _, err := d.Resolve(t.Context(), "acct", geo.Table, func(a *catalog.Account) string {
			require.Equal(t, geo.Account("acct"), a.Name)
			name := names[0]
			names = names[1:]
			return name
		})
		require.NoError(t, err)
		return found
	}
	require.Equal(t, "Second", resolve("first", "second").Container.Name)
	require.Equal(t, "First", resolve("", "first").Container.Name)
	require.Nil(t, resolve("first", ""), "the last run asked for none")
	missing := resolve("first", "missing")
	require.ErrorIs(t, missing.Err, storageerr.ResourceNotFound)
	require.Nil(t, missing.Container)

	s.between = func() {
		s.between = nil
		create("missing")
	}
	require.Equal(t, "missing", resolve("missing", "missing").Container.Name)
}

// R17: a copy that is deleted after its account was read, and before its container is, has no missing container: the
// account is read again, whose copy is not complete.
func TestR17ResolveInADeletedCopy(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	b.arriveAt(t, "south", a)
	next := *a
	next.Epoch, next.Operation = 2, &catalog.Operation{Kind: catalog.OperationBootstrap}
	calls := 0
	got, _, _, err := b.south.Resolve(t.Context(), "acct", geo.Table, func(a *catalog.Account) string {
		if calls++; calls == 1 {
			require.False(t, a.Partial())
			require.NoError(t, b.south.Prepare(t.Context(), next))
		}
		return "tbl"
	})
	require.NoError(t, err)
	require.True(t, got.Partial())
	require.GreaterOrEqual(t, calls, 2, "a read under a lease that has ended is made again")
}
