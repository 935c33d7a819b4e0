package rejoin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
)

// R22: the streams of an epoch that began here are withheld until the former primary has followed, or takes them to be rewound;
// those of an account that has become the other location's for good. The catalog's are not.
func TestR22Withheld(t *testing.T) {
	t.Parallel()
	const cat, data geo.RangeID = 1, 3
	taken := func(op catalog.Operation) *catalog.Operation {
		op.Kind = catalog.OperationTaken
		return &op
	}
	for name, c := range map[string]struct {
		primary  geo.Location
		number   geo.EpochNumber
		op       *catalog.Operation
		withheld bool
	}{
		"at rest":                   {primary: "north", number: 2},
		"a copy is made":            {primary: "north", number: 2, op: &catalog.Operation{Kind: catalog.OperationBootstrap}},
		"taken":                     {primary: "north", number: 2, op: taken(catalog.Operation{}), withheld: true},
		"diverged":                  {primary: "north", number: 2, op: taken(catalog.Operation{Diverged: true}), withheld: true},
		"kept its changes":          {primary: "north", number: 2, op: taken(catalog.Operation{Rewinding: true}), withheld: true},
		"takes the streams":         {primary: "north", number: 2, op: taken(catalog.Operation{Rewinding: true, Joined: true})},
		"an older record":           {primary: "south", number: 1, withheld: true},
		"moved away":                {primary: "south", number: 3, withheld: true},
		"a later epoch, still here": {primary: "north", number: 3},
	} {
		a := &catalog.Account{Name: "acct", Primary: c.primary, Epoch: c.number, Operation: c.op}
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 2, Location: "north"}, Range: data}
		require.Equal(t, c.withheld, Withheld(a, st, cat, "north"), name)
		st.Range = cat
		require.False(t, Withheld(a, st, cat, "north"), name)
	}
}
