package location

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/membership"
)

// R4: the store of a bus is refused to the bus of another node, of another location and of another installation, which
// the data folder names.
func TestR4StoreOfAnotherBus(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "nats")
	claim := func(l geo.Location, id geo.NodeID, installation string) error {
		o := Options{Name: l, Dir: filepath.Join(dir, installation), Nodes: []geo.NodeID{1, 2, 3}, Local: []geo.NodeID{id}}
		return (&Location{o: o}).claimBus(store)
	}
	founded := func(installation string, stamp membership.StampID) {
		f, err := membership.ClaimFolder(vfs.Default, filepath.Join(dir, installation, "north", "north-1"), "north", 1)
		require.NoError(t, err)
		require.NoError(t, f.Meet(2, stamp))
	}
	require.NoError(t, claim("north", 1, "a"))
	founded("a", membership.StampID{1})
	require.NoError(t, claim("north", 1, "a"))
	require.ErrorContains(t, claim("north", 2, "a"), "belongs to the bus of north-1, not to the bus of north-2")
	require.ErrorIs(t, claim("south", 1, "a"), membership.ErrOwner)
	founded("b", membership.StampID{2})
	require.ErrorContains(t, claim("north", 1, "b"), "of another installation, stamp 01000000")
	require.NoError(t, claim("north", 1, "a"))
}
