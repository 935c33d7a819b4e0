package directory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// both is a pair with its stamps.
type both struct {
	*pair
	stamps map[geo.Location]*stamp.Stamp
}

var every = []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table}

func newBoth(t *testing.T) *both {
	b := &both{&pair{}, map[geo.Location]*stamp.Stamp{}}
	for _, l := range []geo.Location{"north", "south"} {
		b.stamps[l] = stamptest.New(t, l, every...)
	}
	b.north, b.south = directory.NewDirectory(b.stamps["north"], "south"), directory.NewDirectory(b.stamps["south"], "north")
	b.north.SetPeer(linked{b.pair, b.south})
	b.south.SetPeer(linked{b.pair, b.north})
	return b
}

// requireGates checks the gates of an account in all ranges of a location.
func (b *both) requireGates(t *testing.T, l geo.Location, name geo.Account, want change.Gate) {
	t.Helper()
	for _, s := range every {
		require.Equal(t, want, b.stamps[l].Leader(geo.FirstRange(s)).Machine.Gate(name), "%s at %s", s, l)
	}
}

func (b *both) requireNothingShipped(t *testing.T, l geo.Location, name geo.Account) {
	t.Helper()
	for _, s := range every {
		heads, _ := b.stamps[l].Leader(geo.FirstRange(s)).Machine.Heads()
		for st := range heads {
			require.NotEqual(t, name, st.Account, "%s", st)
		}
	}
}

// An LRS account has gates without numbers at its primary and closed ones at the other location, which
// knows it without having received anything: its changes leave no hole in any stream (R10).
func TestR10LRSIsNotShipped(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "alone", Redundancy: catalog.LRS})
	require.NoError(t, err)
	require.Equal(t, catalog.LRS, a.Redundancy)
	require.Empty(t, a.Secondary)
	require.Nil(t, a.Operation)
	b.requireGates(t, "north", "alone", change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true})
	b.requireGates(t, "south", "alone", change.Gate{Epoch: a.GeoEpoch()})
	b.requireNothingShipped(t, "north", "alone")
	for _, d := range []*directory.Directory{b.north, b.south} {
		got, err := d.Account(t.Context(), "alone")
		require.NoError(t, err)
		require.True(t, got.SameCreation(a))
		require.Equal(t, *a, *got)
		left, err := d.Incomplete(t.Context())
		require.NoError(t, err)
		require.Empty(t, left)
	}
	_, err = b.south.Create(t.Context(), "alone", nil, nil)
	requireTaken(t, err)
}

// GRS ships as RA-GRS does (R10).
func TestR10GRSIsShipped(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "hidden", Redundancy: catalog.GRS})
	require.NoError(t, err)
	require.EqualValues(t, "south", a.Secondary)
	b.requireGates(t, "north", "hidden", change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
	b.requireGates(t, "south", "hidden", change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true})
}

// An LRS account needs the other location for its name alone (R8). Once that is reserved the account is
// complete at its primary; the other location learns it when it is reachable again.
func TestR8LRSIsAnnouncedLater(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.cut = true
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "alone", Redundancy: catalog.LRS})
	require.ErrorContains(t, err, "cannot be reserved at ")

	b.cut = false
	b.north.SetPeer(reservesOnly{linked{b.pair, b.south}})
	a, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "alone"}) // The first call chose LRS.
	require.NoError(t, err)
	require.Equal(t, catalog.LRS, a.Redundancy)
	require.Equal(t, catalog.OperationAnnounce, a.Operation.Kind)
	_, err = b.south.Account(t.Context(), "alone")
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	_, err = b.north.Resume(t.Context())
	require.ErrorIs(t, err, errLink)

	b.north.SetPeer(linked{b.pair, b.south})
	requireResumed(t, b.north)
	for _, d := range []*directory.Directory{b.north, b.south} {
		got, err := d.Account(t.Context(), "alone")
		require.NoError(t, err)
		require.Nil(t, got.Operation)
	}
	b.requireGates(t, "south", "alone", change.Gate{Epoch: a.GeoEpoch()})
	require.NoError(t, b.south.Announce(t.Context(), *a), "a late call")
	b.requireNothingShipped(t, "north", "alone")
}

// requireResumed goes on with all operations of a location, of which none has more to do then.
func requireResumed(t *testing.T, d *directory.Directory) {
	t.Helper()
	again, err := d.Resume(t.Context())
	require.NoError(t, err)
	require.Zero(t, again)
}

// reservesOnly is a peer that is lost after a reservation.
type reservesOnly struct{ linked }

func (reservesOnly) Announce(context.Context, catalog.Account) error { return errLink }

// A creation that goes on with another redundancy begins again with another epoch, since its gates
// differ; a complete account is not taken for one of another redundancy.
func TestCreationChangesRedundancy(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.cut = true
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.RAGRS})
	require.ErrorContains(t, err, "its name stays reserved: try again once that is mended, or give it up with antipodectl account free acct --yes")
	b.cut = false
	a, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Epoch)
	require.Equal(t, catalog.LRS, a.Redundancy)

	_, err = b.north.EnsureAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.GRS}, nil)
	require.ErrorContains(t, err, "is LRS, not GRS")
	for _, r := range []catalog.Redundancy{"", catalog.LRS} {
		got, err := b.south.EnsureAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: r}, nil)
		require.NoError(t, err)
		require.True(t, got.SameCreation(a))
	}
}
