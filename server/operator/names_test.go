package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// The names are those of the location that is asked for, in this process or through its nodes; one that does not answer,
// or that there is not, is an error.
func TestNamesOfALocation(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	for what, b := range backends(t, north, south) {
		north.calls()
		for _, l := range []geo.Location{"north", "south"} {
			got, err := Do(t.Context(), b, wire.CallNames, wire.At{Location: l}, wire.NamesQuery{Since: "v1", After: "abc"})
			require.NoError(t, err, what)
			require.Equal(t, l, got.Location, what)
			require.Equal(t, "v1+", got.Version, what)
		}
		require.Contains(t, north.calls(), `names after "abc"`, what)
		_, err := Do(t.Context(), b, wire.CallNames, wire.At{Location: "east"}, wire.NamesQuery{})
		row, ours := storageerr.Of(err)
		require.True(t, ours, what)
		require.Equal(t, storageerr.InvalidInput.Code, row.Code, what)
	}
	north.fail = errors.New("no quorum")
	for what, b := range backends(t, north, south) {
		_, err := Do(t.Context(), b, wire.CallNames, wire.At{Location: "north"}, wire.NamesQuery{})
		require.Error(t, err, what)
	}
}
