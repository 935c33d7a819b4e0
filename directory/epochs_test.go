package directory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/stamptest"
)

// R19, R21: an account that is in the catalog here with a higher epoch than the one that is asked for is named, with that
// epoch. One with the same or a lower epoch, one whose creation has not ended, and one that is not known here are not.
func TestR21HigherEpochs(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := directory.NewDirectory(s, "north")
	d.SetPeer(&peer{})
	for _, name := range []geo.Account{"mine", "alsomine"} {
		_, err := d.Create(t.Context(), name, nil, nil)
		require.NoError(t, err)
	}
	require.NoError(t, d.Reserve(t.Context(), catalog.Account{
		Name: "begun", Primary: "north", Secondary: "south", Redundancy: catalog.RAGRS, Epoch: 5, Created: 1,
	}))
	north := func(n geo.EpochNumber) geo.Epoch { return geo.Epoch{Number: n, Location: "north"} }
	own, err := d.Own(t.Context())
	require.NoError(t, err)
	require.Len(t, own, 2)
	mine := own["mine"]
	require.Equal(t, geo.Location("south"), mine.Location)

	above, err := d.Higher(t.Context(), map[geo.Account]geo.Epoch{
		"mine": north(mine.Number - 1), "alsomine": north(mine.Number + 1), "begun": north(1), "unknown": north(1),
	})
	require.NoError(t, err)
	require.Equal(t, map[geo.Account]geo.Epoch{"mine": mine}, above)
	above, err = d.Higher(t.Context(), map[geo.Account]geo.Epoch{"mine": mine})
	require.NoError(t, err)
	require.Empty(t, above)
}

// R21: while a location takes over that an account has moved, its record is that of the other location before all ranges
// have the gate. Until that is done it asks for the account in an epoch from the former one on and below the present one.
// Else a range that is late would take writes.
func TestR21OwnNamesWhatIsTaken(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := directory.NewDirectory(s, "north")
	d.SetPeer(&peer{})
	_, err := d.Create(t.Context(), "mine", nil, nil)
	require.NoError(t, err)
	was, err := d.Account(t.Context(), "mine")
	require.NoError(t, err)
	taken := *was
	taken.Primary, taken.Secondary, taken.Epoch = "north", "south", was.Epoch+1
	taken.Operation = &catalog.Operation{Kind: catalog.OperationTaken, Unplanned: true}
	require.ErrorIs(t, d.Adopt(t.Context(), rejoin.Taken{Account: taken}), rejoin.ErrDiverged)
	own, err := d.Own(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, own["mine"].Compare(was.GeoEpoch()), 0)
	require.Negative(t, own["mine"].Compare(taken.GeoEpoch()))
}
