package directory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
)

// R19: a location that is promoted before an Adopt with Opened has come from the one that it follows ends its own former
// streams itself: nobody else does.
func TestR19OwnFormerStreamsEnd(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.cut = true
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	_ = a.resumed(t, 6)
	id := geo.FirstRange(geo.Catalog)
	former := func() (n int) {
		heads, _ := a.stamps["north"].Leader(id).Machine.Heads()
		for st := range heads {
			if st.Account == a.name && st.Epoch.Number == 1 {
				n++
			}
		}
		return n
	}
	require.NoError(t, a.north.Adopt(t.Context(), rejoin.Taken{Account: *a.at(t), Forks: a.forks(t)}))
	a.follows(t)
	require.Positive(t, former())

	north := directory.NewDirectory(a.stamps["north"], "south")
	north.SetPace(a.clock, 0)
	north.NeverWait()
	north.SetPeer(linked{a.pair, a.pair.south})
	_, err = north.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	resume := func() *catalog.Account {
		for range 8 {
			_, _ = north.Resume(t.Context())
			a.clock.Advance(time.Second)
		}
		of, err := north.Account(t.Context(), a.name)
		require.NoError(t, err)
		return of
	}
	require.Equal(t, geo.Epoch{Number: 3, Location: "north"}, resume().GeoEpoch())
	a.cut = false
	require.Nil(t, resume().Operation)
	require.Zero(t, former())
}
