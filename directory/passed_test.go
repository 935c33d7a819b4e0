package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// unasked is another location that must not be called.
type unasked struct{ Peer }

// R17: an account went on to a later epoch while its ranges left the last one for an operation, and one range has that epoch
// already. The operation calls the other location for nothing: ranges that have not left it still ship to the copy, which
// the call would delete.
func TestR17OperationOfBeforeLeavesTheCopy(t *testing.T) {
	t.Parallel()
	for _, kind := range []catalog.OperationKind{catalog.OperationBootstrap, catalog.OperationLeave} {
		s := stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Table, geo.Queue)
		ships := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
		for _, of := range []geo.Service{geo.Catalog, geo.Blob, geo.Table, geo.Queue} {
			stamptest.Submit(t, s, geo.FirstRange(of), stamptest.Gate{Account: "acct", Gate: ships})
		}
		first, last := s.Route().Data("acct")[0], s.Route().Data("acct")[2]
		later := change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Role: change.RolePrimary, Open: true}
		stamptest.Submit(t, s, first.ID, stamptest.Gate{Account: "acct", Gate: later})

		before := catalog.Account{
			Name: "acct", Redundancy: catalog.RAGRS, Epoch: 2, Primary: "north", Secondary: "south", Operation: &catalog.Operation{Kind: kind},
		}
		d := NewDirectory(s, "south")
		d.SetPeer(unasked{})
		again, err := d.resume(t.Context(), before)
		require.NoError(t, err)
		require.Equal(t, record.NextTurn, again)
		require.Equal(t, ships, s.Leader(last.ID).Machine.Gate("acct"))
	}
}
