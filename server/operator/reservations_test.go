package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

func record(name geo.Account, at, primary geo.Location, epoch geo.EpochNumber) wire.Reservation {
	r := wire.Reservation{Name: name, Location: at, Kind: wire.KindReservation, Primary: primary, Epoch: wire.Epoch{Number: epoch, Location: primary}}
	if at == primary {
		r.Kind = wire.KindCreation
	}
	return r
}

// The list has what both locations hold, and what each record waits for (table).
func TestReservations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	north.reservations = []wire.Reservation{
		record("alone", "north", "north", 1), record("reserved", "north", "north", 2), record("both", "north", "north", 1),
	}
	north.accounts = []wire.Account{photos().Account}
	south.reservations = []wire.Reservation{
		record("reserved", "south", "north", 2), record("both", "south", "south", 1), record("gone", "south", "north", 3),
		record("photos", "south", "north", 3),
	}
	want := map[string]string{
		"alone at north":    "the reservation at the other location: antipodectl account create alone --location north continues it",
		"reserved at north": "its completion at north: antipodectl account create reserved --location north continues it",
		"reserved at south": "its completion at north: antipodectl account create reserved --location north continues it",
		"both at north":     "a decision: south holds another creation; the next creation takes the name",
		"both at south":     "a decision: north holds another creation; the next creation takes the name",
		"gone at south":     "nothing: the creation at north is gone",
		"photos at south":   "the account is complete elsewhere: its record is on the way",
	}
	for what, b := range backends(t, north, south) {
		all, err := b.Reservations(t.Context())
		require.NoError(t, err, what)
		got := map[string]string{}
		for _, r := range all.Reservations {
			got[string(r.Name)+" at "+string(r.Location)] = r.Waits
		}
		require.Equal(t, want, got, what)
		require.Empty(t, all.SilentLocations, what)
	}

	south.fail = errors.New("no quorum")
	for what, b := range backends(t, north, south) {
		all, err := b.Reservations(t.Context())
		require.NoError(t, err, what)
		require.Len(t, all.Reservations, 3, what)
		require.Equal(t, []geo.Location{"south"}, all.SilentLocations, what)
		require.Equal(t, "location south does not answer", all.Reservations[0].Waits, what)
	}
	north.fail = south.fail
	for what, b := range backends(t, north, south) {
		_, err := b.Reservations(t.Context())
		require.Error(t, err, what)
	}
}

// A name is freed at all locations, the creation first; an account that is complete is refused by
// its name.
func TestFreeReservation(t *testing.T) {
	for _, kind := range []string{"here", "through nodes"} {
		north, south := newFake("north"), newFake("south")
		north.accounts = []wire.Account{photos().Account}
		// The primary is the second location, so the order is not that of the list.
		north.reservations = []wire.Reservation{record("half", "north", "south", 2), record("other", "north", "north", 1)}
		south.reservations = []wire.Reservation{record("half", "south", "south", 2)}
		b := backends(t, north, south)[kind]
		freed, err := b.FreeReservation(t.Context(), "half", "")
		require.NoError(t, err, kind)
		require.Len(t, freed.Reservations, 2, kind)
		require.Equal(t, wire.KindCreation, freed.Reservations[0].Kind, kind)
		require.Equal(t, geo.Location("south"), freed.Reservations[0].Location, kind)
		require.Len(t, north.reservations, 1, "another name stays")
		require.Contains(t, south.calls(), "free half", kind)
		require.Contains(t, north.calls(), "free half", kind)

		_, err = b.FreeReservation(t.Context(), "photos", "")
		row, ours := storageerr.Of(err)
		require.True(t, ours, kind)
		require.Equal(t, storageerr.AccountAlreadyExists.Code, row.Code, kind)
		require.ErrorContains(t, err, "account photos is complete", kind)
	}
}

// A port of one location frees there alone.
func TestFreeReservationAtOneLocation(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	north.reservations = []wire.Reservation{record("half", "north", "north", 2)}
	south.reservations = []wire.Reservation{record("half", "south", "north", 2)}
	freed, err := backends(t, north, south)["here"].FreeReservation(t.Context(), "half", "south")
	require.NoError(t, err)
	require.Len(t, freed.Reservations, 1)
	require.Len(t, north.reservations, 1)
	require.Empty(t, south.reservations)
}
