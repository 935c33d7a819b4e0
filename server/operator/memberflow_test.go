package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// flows is what the process of the node knows: range 1 is led by node 1, range 4 by node 2, which receives
// too.
func (p *process) flows(_ context.Context, at wire.At, _ wire.None) (wire.Flows, error) {
	out := wire.Flow{Location: "north", Account: wire.Account{Name: at.Account}, Ranges: []wire.RangeFlow{{Range: 1}, {Range: 4}}}
	head := func(n uint64) *wire.SourceFlow { return &wire.SourceFlow{Streams: []wire.SourceStream{{Head: n}}} }
	switch p.id {
	case 1:
		out.Ranges[0].Source, out.Ranges[0].Leader = head(7), "north-1"
	case 2:
		out.Ranges[1].Source, out.Ranges[1].Leader = head(9), "north-2"
		out.Services, out.Speeds = []wire.ServiceStatus{{Service: "table"}}, map[string]float64{"table": 1}
		out.Calls = &wire.Trouble{Error: "away"}
		out.Ranges[0].Receiver = &wire.ReceiverFlow{Ahead: true}
		out.Ranges[0].Lead = &wire.LeadFlow{DiskFull: true}
	case 3:
		out.Link.State = wire.LinkCut
	}
	return wire.Flows{Flows: []wire.Flow{out}}, p.fail
}

// Every process shows the streams as all of them know them: those of a range from its leader, what was received
// from the process that receives. A process that does not answer is named.
func TestFlowOfAllProcesses(t *testing.T) {
	leader := geo.NodeID(1)
	all, views := three(&leader)
	for id, view := range views {
		got, err := flowOf(t.Context(), view, "photos")
		require.NoError(t, err)
		require.Equal(t, wire.Flow{
			Location: "north", Account: wire.Account{Name: "photos"}, Link: wire.Link{State: wire.LinkCut},
			Services: []wire.ServiceStatus{{Service: "table"}}, Speeds: map[string]float64{"table": 1}, Calls: &wire.Trouble{Error: "away"},
			Ranges: []wire.RangeFlow{
				{
					Range: 1, Leader: "north-1", Source: &wire.SourceFlow{Streams: []wire.SourceStream{{Head: 7}}},
					Receiver: &wire.ReceiverFlow{Ahead: true}, Lead: &wire.LeadFlow{DiskFull: true},
				},
				{Range: 4, Leader: "north-2", Source: &wire.SourceFlow{Streams: []wire.SourceStream{{Head: 9}}}},
			},
		}, got, "node %d", id)
	}
	all[2].away = true
	got, err := flowOf(t.Context(), views[1], "photos")
	require.NoError(t, err)
	require.Equal(t, []string{"north-2"}, got.Silent)
	require.Nil(t, got.Ranges[1].Source)
	require.NotNil(t, got.Ranges[0].Source)
}
