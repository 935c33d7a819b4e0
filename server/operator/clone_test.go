package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// A clone is opened at the secondary location, shown with the endpoints of the port that answers, and found wherever it is:
// the account may have moved since.
func TestCloneAtTheSecondary(t *testing.T) {
	account := func(primary, secondary geo.Location) []wire.Account {
		return []wire.Account{{Name: "photos", Primary: primary, Secondary: secondary, Epoch: wire.Epoch{Number: 1, Location: primary}}}
	}
	north, south := newFake("north"), newFake("south")
	for what, b := range backends(t, north, south) {
		north.accounts, south.accounts, north.clone, south.clone = account("north", "south"), account("north", "south"), nil, nil
		_, err := b.Clone(t.Context(), "photos")
		require.True(t, noClone(err), "%s: %v", what, err)
		c, err := b.OpenClone(t.Context(), "photos", wire.OpenClone{ForSeconds: 60})
		require.NoError(t, err, what)
		require.Equal(t, geo.Location("south"), c.Location, what)
		require.Len(t, c.Endpoints, len(geo.Services), what)
		require.Contains(t, c.Endpoints[0].URL, "/photos-drill", what)
		require.Nil(t, north.clone, what)

		north.accounts, south.accounts = account("south", "north"), account("south", "north")
		shown, err := b.Clone(t.Context(), "photos")
		require.NoError(t, err, what)
		require.Equal(t, c, shown, what)
		north.fail = errors.New("away")
		_, err = b.DropClone(t.Context(), "photos")
		require.NoError(t, err, what)
		require.Nil(t, south.clone, what)
		_, err = b.DropClone(t.Context(), "photos")
		require.False(t, noClone(err), "%s: north may have one: %v", what, err)
		north.fail = nil

		north.accounts, south.accounts = account("north", ""), nil
		_, err = b.OpenClone(t.Context(), "photos", wire.OpenClone{})
		require.NoError(t, err, what)
		require.NotNil(t, north.clone, "%s: the primary of an account without a secondary refuses it", what)
	}
}
