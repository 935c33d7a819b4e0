package directory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
)

// R21, invariant 8: the witness forgets a claim once it is over, and not before: while its promotion is under way, and
// while the former primary does not know of it, the claim is what keeps that from its writes.
func TestR21ClaimsThatAreOverAreReleased(t *testing.T) {
	t.Parallel()
	a, p := newWitnessed(t)
	release := func() {
		t.Helper()
		have := map[geo.Account]geo.Epoch{"other": {Number: 9, Location: "north"}, "gone": {Number: 1, Location: "south"}}
		for name, n := range p.claims {
			have[name] = geo.Epoch{Number: n, Location: "south"}
		}
		require.NoError(t, a.pair.south.Promoter().ReleaseClaims(t.Context(), have))
	}
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	for a.at(t).Primary != "south" {
		_ = a.resumed(t, 1)
		release()
		require.Equal(t, geo.EpochNumber(2), p.claims[a.name])
	}
	require.ErrorIs(t, a.resumed(t, 3), errLink)
	release()
	require.Len(t, p.claims, 1, "the north does not know")
	a.cut = false
	require.NoError(t, a.resumed(t, 1))
	p.away = true
	have := map[geo.Account]geo.Epoch{a.name: {Number: 2, Location: "south"}}
	require.ErrorIs(t, a.pair.south.Promoter().ReleaseClaims(t.Context(), have), errPlace)
	p.away = false
	release()
	require.Empty(t, p.claims)

	// One that has ended without effect, whose withdrawal the witness has lost since.
	a, p = newWitnessed(t)
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 1))
	_, err = a.pair.south.Promoter().EndPromotion(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 2))
	require.Empty(t, a.phase(t))
	p.claims[a.name] = 2
	release()
	require.Empty(t, p.claims)
	p.claims[a.name] = 3
	release()
	require.Len(t, p.claims, 1, "of an epoch that was never seen here: the catalog may have lost it")
	none := directory.NewDirectory(a.south, "north")
	require.NoError(t, none.Promoter().ReleaseClaims(t.Context(), have), "there is no witness")
}
