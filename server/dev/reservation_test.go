package dev

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// One name is created at both locations while the link is cut. An operator sees both creations on
// the admin port and frees the name; then either location makes the account, and a second creation
// without that works as well (R8).
func TestNameCreatedAtBothLocations(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	create := func(name geo.Account, l geo.Location) error {
		_, err := client.CreateAccount(t.Context(), wire.NewAccount{Name: name, Location: l})
		return err
	}
	c.link.Cut()
	for _, name := range []geo.Account{"freed", "retried"} {
		require.ErrorContains(t, create(name, North), "cannot be reserved")
		require.ErrorContains(t, create(name, South), "cannot be reserved")
	}
	c.link.Heal()

	all, err := client.Reservations(t.Context())
	require.NoError(t, err)
	require.Len(t, all.Reservations, 4)
	for _, r := range all.Reservations {
		require.Equal(t, wire.KindCreation, r.Kind)
		require.Contains(t, r.Waits, "a decision")
	}
	freed, err := client.FreeReservation(t.Context(), "freed")
	require.NoError(t, err)
	require.Len(t, freed.Reservations, 2)
	_, err = client.FreeReservation(t.Context(), "freed")
	require.ErrorContains(t, err, "no creation of that name waits")
	_, err = client.FreeReservation(t.Context(), "northacct")
	require.ErrorContains(t, err, "account northacct is complete")

	for name, l := range map[geo.Account]geo.Location{"freed": South, "retried": North} {
		require.NoError(t, create(name, l))
		a, err := c.WaitLive(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, l, a.Primary)
		require.EqualValues(t, 2, a.Epoch.Number)
	}
	eventually(t, "the complete records have arrived", func() bool {
		all, err := client.Reservations(t.Context())
		return err == nil && len(all.Reservations) == 0
	})
}
