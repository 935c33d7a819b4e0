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
	knows := func(name geo.Location, n geo.EpochNumber, primary geo.Location) *fake {
		f := newFake(name)
		f.accounts = []wire.Account{{Name: "photos", Primary: primary, Epoch: wire.Epoch{Number: n}}}
		return f
	}
	north, south := knows("north", 1, "north"), knows("south", 2, "south")
	b := New(Options{Clock: clock.System{}, Locations: []Location{north, south}})
	v, err := b.StartVerify(t.Context(), "photos", wire.VerifyQuery{Service: "blob"})
	require.NoError(t, err)
	require.Equal(t, geo.Location("south"), v.Primary)
	v, err = b.Verify(t.Context(), "photos")
	require.NoError(t, err)
	require.Equal(t, geo.Location("south"), v.Primary)

	_, err = b.Verify(t.Context(), "nobody")
	require.ErrorIs(t, err, storageerr.AccountNotFound)

	alone := New(Options{Clock: clock.System{}, Locations: []Location{knows("north", 2, "south")}})
	_, err = alone.StartVerify(t.Context(), "photos", wire.VerifyQuery{})
	var said *wire.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, wire.CodeAskPrimary, said.Code)
	require.Contains(t, said.Message, "south")

	silent := newFake("south")
	silent.fail = errors.New("away")
	away := New(Options{Clock: clock.System{}, Locations: []Location{newFake("north"), silent}})
	_, err = away.StartVerify(t.Context(), "photos", wire.VerifyQuery{})
	require.ErrorContains(t, err, "away")
}
