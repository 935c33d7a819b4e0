package directory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// What a location knows of an incoming stream is in its catalog, by origin, until the stream is another one; it is
// not shipped, and nothing is committed for what is known (R15).
//
// Capability: Two locations: Which stream a location received last is in its catalog (R15).
func TestR15StreamIsRemembered(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	known := func(origin geo.Location) (made time.Time) {
		require.NoError(t, s.Read(t.Context(), id, func(state ranges.State) (err error) {
			heads, _ := s.Leader(id).Machine.Heads()
			require.Empty(t, heads)
			made, err = catalog.StreamMade(state, origin)
			return err
		}))
		return made
	}
	require.Zero(t, known("south"))
	first, second := time.Unix(1, 2).UTC(), time.Unix(0, 5).UTC() // The clock of the bus may have been set back.
	for _, made := range []time.Time{first, second} {
		stamptest.Submit(t, s, id, RememberStream{Origin: "south", Made: made})
		require.Equal(t, made, known("south"))
		require.Zero(t, known("west"))
		at := s.Leader(id).Machine.AppliedState()
		stamptest.Submit(t, s, id, RememberStream{Origin: "south", Made: made.In(time.FixedZone("", 3600))})
		require.Equal(t, at, s.Leader(id).Machine.AppliedState())
	}
	snap, err := ranges.Snapshot(t.Context(), s, id)
	require.NoError(t, err)
	defer func() { require.NoError(t, snap.Close()) }()
	require.NoError(t, catalog.EachAccount(t.Context(), snap, func(name geo.Account, _ []byte) error {
		t.Errorf("account %s", name)
		return nil
	}))
}
