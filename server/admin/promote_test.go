package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// R20: the secondary of an account is asked for an unplanned failover, also where the primary fails; its end is asked of
// the secondary first, and of the primary where that has none.
func TestR20SecondaryIsPromoted(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	south.accounts = []wire.Account{{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south"}}
	north.fail = wire.ErrUnreachable
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}})
		require.NoError(t, err, what)
		require.EqualValues(t, "south", a.Primary, what)
		require.Contains(t, south.calls(), "failover unplanned of mail", what)
		a, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "south", DryRun: true}})
		require.NoError(t, err, what)
		require.EqualValues(t, "south", a.Primary, what)
		_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
		require.NoError(t, err, what)
		require.Contains(t, south.calls(), "failover end of mail", what)
		_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "mars"}})
		require.ErrorContains(t, err, "mars", what)
	}
	north.fail, north.accounts = nil, south.accounts
	south.noPromotion = true
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
		require.NoError(t, err, what)
		require.EqualValues(t, "north", a.Primary, what)
	}
}
