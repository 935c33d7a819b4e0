package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// The primary of an account changes it, whichever location answered first; the answer has the endpoints of the
// redundancy that the account has now.
func TestUpdateReachesThePrimary(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	north.accounts = []wire.Account{{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north"}}
	south.accounts = north.accounts
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Redundancy: "GRS"})
		require.NoError(t, err, what)
		require.Equal(t, "GRS", a.Redundancy)
		require.Equal(t, "not yet", a.Behind)
		require.Len(t, a.Endpoints, 3)
		require.Empty(t, a.Endpoints[0].Secondary)
		require.Contains(t, south.calls(), "update mail to GRS", what)
		require.NotContains(t, north.calls(), "update mail to GRS", what)
		_, err = b.UpdateAccount(t.Context(), "nobody", wire.UpdateAccount{Redundancy: "GRS"})
		require.True(t, notFound(err), what)
	}
}
