package flow

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// While a copy is being made, or the secondary does not know of the primary's epoch yet, there are rows without a number:
// how many records are not there is not known, which is not zero.
func TestRecordsOfACopyAreNotCounted(t *testing.T) {
	epoch := func(n geo.EpochNumber) wire.Account {
		return wire.Account{Name: "photos", Primary: "north", Secondary: "south", Epoch: wire.Epoch{Number: n, Location: "north"}}
	}
	for name, c := range map[string]struct {
		there  geo.EpochNumber
		blob   wire.ServiceStatus
		counts bool
	}{
		"live":              {3, wire.ServiceStatus{Service: "blob", Status: wire.Live}, true},
		"forked":            {3, wire.ServiceStatus{Service: "blob", Status: wire.Unavailable, Reason: "forked"}, true},
		"bootstrap":         {3, wire.ServiceStatus{Service: "blob", Status: wire.Bootstrap}, false},
		"bootstrap, stands": {3, wire.ServiceStatus{Service: "blob", Status: wire.Unavailable, Reason: "bootstrap"}, false},
		"of before":         {2, wire.ServiceStatus{Service: "blob", Status: wire.Live}, false},
	} {
		flows := []wire.Flow{
			{Location: "north", Account: epoch(3)},
			{Location: "south", Account: epoch(c.there), Services: []wire.ServiceStatus{c.blob}},
		}
		got := endsOf(wire.Flows{Flows: flows}).service("blob", nil)
		require.Equal(t, c.counts, got.LagRecords != nil, name)
		require.Equal(t, c.blob.Status, got.Status, name)
	}
}
