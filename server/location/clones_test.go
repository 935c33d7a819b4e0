package location

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/node"
)

// R4: no clone is made of a part of a copy, which nobody may read under the name of the secondary either.
func TestR4NoCloneOfAPart(t *testing.T) {
	t.Parallel()
	part, failed := geo.Service(0), errors.New("no lease")
	whole := func(_ context.Context, a *catalog.Account, s geo.Service) (bool, error) {
		require.EqualValues(t, "acct", a.Name)
		return s != part, nil
	}
	a := &catalog.Account{Name: "acct"}
	require.NoError(t, cloneWhole(t.Context(), a, whole))
	for _, part = range geo.Services {
		var said *wire.Error
		require.ErrorAs(t, cloneWhole(t.Context(), a, whole), &said)
		require.Equal(t, wire.CodeCloneRefused, said.Code)
		require.Contains(t, said.Message, "the copy of its "+part.String()+" service")
	}
	require.ErrorIs(t, cloneWhole(t.Context(), a, func(context.Context, *catalog.Account, geo.Service) (bool, error) { return false, failed }), failed)
}

// A clone ends once the disk of its node is nearly full, and no other one: while it is open payload there is not reclaimed (R9).
func TestR9CloneGivesWayOnAFullDisk(t *testing.T) {
	t.Parallel()
	c := &clones{open: map[geo.Account]*openClone{"here": {host: 2}, "there": {host: 3}}}
	c.note(node.Event{Kind: node.DiskHasRoom, Node: 2})
	require.False(t, c.open["here"].pressed)
	c.note(node.Event{Kind: node.DiskFull, Node: 2})
	require.True(t, c.open["here"].pressed)
	require.False(t, c.open["there"].pressed)
}
