package rejoin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/stamptest"
)

// R19, invariant 4: the gate of an account that the other location has taken is not opened here as its primary's.
func TestR19TakenByTheOtherLocationIsNotOpened(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Table)
	a := catalog.Account{Name: "acct", Primary: "south", Secondary: "north", Redundancy: catalog.RAGRS, Active: true, Epoch: 4, Created: 1}
	table := geo.FirstRange(geo.Table)
	open := &openTaken{record.SetGate{Account: "acct", Gate: record.PrimaryGate(&a)}}
	require.ErrorIs(t, s.Submit(t.Context(), table, open), record.ErrCommand)
	require.Zero(t, s.Leader(table).Machine.Gate("acct"))
}
