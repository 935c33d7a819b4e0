package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// The location that is the primary in the latest epoch compares; a port that does not reach it says so.
func TestVerifyAsksThePrimary(t *testing.T) {
	account := func(n geo.EpochNumber, primary geo.Location) []wire.Account {
		return []wire.Account{{Name: "photos", Primary: primary, Epoch: wire.Epoch{Number: n}}}
	}
	north, south := &fake{name: "north", accounts: account(1, "north")}, &fake{name: "south", accounts: account(2, "south")}
	b := New(Options{Clock: clock.System{}, Locations: []Location{north, south}})
	v, err := b.StartVerify(t.Context(), "photos", wire.VerifyQuery{Service: "blob"})
	require.NoError(t, err)
	require.Equal(t, geo.Location("south"), v.Primary)
	v, err = b.Verify(t.Context(), "photos")
	require.NoError(t, err)
	require.Equal(t, geo.Location("south"), v.Primary)

	_, err = b.Verify(t.Context(), "nobody")
	require.ErrorIs(t, err, storageerr.AccountNotFound)

	alone := New(Options{Clock: clock.System{}, Locations: []Location{&fake{name: "north", accounts: account(2, "south")}}})
	_, err = alone.StartVerify(t.Context(), "photos", wire.VerifyQuery{})
	var said *wire.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, wire.CodeAskPrimary, said.Code)
	require.Contains(t, said.Message, "south")

	away := New(Options{Clock: clock.System{}, Locations: []Location{&fake{name: "north"}, &fake{name: "south", fail: errors.New("away")}}})
	_, err = away.StartVerify(t.Context(), "photos", wire.VerifyQuery{})
	require.ErrorContains(t, err, "away")
}
