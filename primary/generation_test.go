package primary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// R8: a container is created in the epoch of the account's gate, read in the evaluation. A request
// that read the directory before the epoch rose must not make a generation that is older than one
// that was deleted in the new epoch: the other location would drop every record of it.
//
// Capability: Two locations: A name created at both locations is not burnt; its highest epoch outlives it (R8).
func TestR8GenerationTakesTheEpochOfTheGate(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	catalogRange := geo.FirstRange(geo.Catalog)
	open := func(epoch geo.EpochNumber) {
		stamptest.Submit(t, s, catalogRange, stamptest.Gate{Account: "acct", Gate: change.Gate{
			Epoch: geo.Epoch{Number: epoch, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true,
		}})
	}
	p := New(s)
	for _, svc := range []geo.Service{geo.Table, geo.Blob} {
		open(1)
		// The request found the account in epoch 1. Then the epoch rises.
		stale := &catalog.Create{Service: svc, Account: "acct", Name: "things"}
		open(2)
		first := &catalog.Create{Service: svc, Account: "acct", Name: "things"}
		require.NoError(t, p.Write(t.Context(), first))
		require.NoError(t, p.Write(t.Context(), &catalog.Delete{Service: svc, Account: "acct", Name: "things"}))
		require.NoError(t, p.Write(t.Context(), stale))
		older, newer := first.Created.Generation(), stale.Created.Generation()
		require.EqualValues(t, 2, newer.Epoch)
		require.Greater(t, newer.Created, older.Created)
	}
}
