package operator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// What three processes know of a location is one view of it: each range as its leader
// shows it, each replica as that leader counts it, Last Sync Time from who receives, alarms
// summed, and of a process that does not answer that alone.
func TestMerge(t *testing.T) {
	node := func(id geo.NodeID) wire.Node {
		return wire.Node{Name: wire.NodeName("north", id), State: wire.Running, Replicas: []wire.Replica{{Range: 1}, {Range: 4}}}
	}
	leads := func(id geo.NodeID, out ...geo.NodeID) *wire.LeaderView {
		v := &wire.LeaderView{Leader: wire.NodeName("north", id), InSyncReplicas: 3 - len(out)}
		for i := geo.NodeID(1); i <= 3; i++ {
			v.Standings = append(v.Standings, wire.Standing{Node: wire.NodeName("north", i), InSync: len(out) == 0 || out[0] != i})
		}
		return v
	}
	account := func(name geo.Account, services ...wire.ServiceStatus) wire.AccountStatus {
		return wire.AccountStatus{Account: wire.Account{Name: name}, Services: services}
	}
	at := func(seconds int64) wire.Time { return wire.Time{Time: time.Unix(seconds, 0)} }
	asked := oneStatus{
		Location: wire.Location{
			Name: "north", State: wire.Stopped, Nodes: []wire.Node{{Name: "north-2", State: wire.Stopped}},
			Ranges: []wire.Range{{Range: 1}, {Range: 4}}, Alarms: map[string]uint64{"gap": 1}, AlarmsRaised: map[string]wire.Time{"gap": at(5)},
		},
		Link: wire.Link{State: wire.LinkUp},
	}
	one := oneStatus{
		Location: wire.Location{
			State: wire.Running, Nodes: []wire.Node{node(1)}, Alarms: map[string]uint64{"gap": 2, "fork": 1}, Warnings: []string{"w"},
			AlarmsRaised: map[string]wire.Time{"gap": at(4), "fork": at(3)},
			Ranges:       []wire.Range{{Range: 1, LeaderView: leads(1, 2)}, {Range: 4}},
		},
		Accounts: []wire.AccountStatus{account("a", wire.ServiceStatus{Service: "table"}), account("b")},
		Link:     wire.Link{State: wire.LinkCut},
	}
	silent := oneStatus{Link: wire.Link{State: wire.LinkUp}, Location: wire.Location{Nodes: []wire.Node{{Name: "north-3", State: wire.Unreachable}}}}

	got := merged([]oneStatus{asked, one, silent})
	require.Equal(t, wire.Running, got.Location.State, "one of its nodes runs")
	require.Equal(t, wire.LinkCut, got.Link.State)
	require.Equal(t, []string{"w"}, got.Location.Warnings)
	require.Equal(t, map[string]uint64{"gap": 3, "fork": 1}, got.Location.Alarms)
	require.Equal(t, map[string]wire.Time{"gap": at(5), "fork": at(3)}, got.Location.AlarmsRaised, "the last one")
	require.Equal(t, []wire.State{wire.Running, wire.Stopped, wire.Unreachable},
		[]wire.State{got.Location.Nodes[0].State, got.Location.Nodes[1].State, got.Location.Nodes[2].State})
	require.Equal(t, "north-1", got.Location.Ranges[0].Leader)
	require.Nil(t, got.Location.Ranges[1].LeaderView, "nobody leads it")
	require.True(t, got.Location.Nodes[0].Replicas[0].InSync)
	require.False(t, got.Location.Nodes[0].Replicas[1].InSync, "no leader counts it")
	require.Len(t, got.Accounts, 2)

	// The views come the other way round: an account's services are those of who knows.
	got = merged([]oneStatus{{Location: asked.Location, Accounts: []wire.AccountStatus{account("a"), account("b")}}, one})
	require.Len(t, got.Accounts[0].Services, 1)
	require.Empty(t, got.Accounts[1].Services)

	// The leader's view stays, whichever process comes last.
	// What a bootstrap has copied is that of a process that knows it, as long as the account is in the bootstrap.
	copying := account("a")
	copying.Operation, copying.Epoch = "bootstrap", wire.Epoch{Number: 2}
	known, ended, before := copying, account("a"), copying
	known.Copied, ended.Epoch, before.Epoch = &wire.Copied{WaitingBytes: 7}, copying.Epoch, wire.Epoch{Number: 1}
	known.OperationWaits = "no leader"
	for _, c := range []struct {
		asked wire.AccountStatus
		want  *wire.Copied
	}{{copying, known.Copied}, {ended, nil}, {before, nil}} {
		got = merged([]oneStatus{{Accounts: []wire.AccountStatus{c.asked}}, {Accounts: []wire.AccountStatus{known}}})
		require.Equal(t, c.want, got.Accounts[0].Copied)
		require.Equal(t, c.want != nil, got.Accounts[0].OperationWaits == known.OperationWaits)
	}

	got = merged([]oneStatus{asked, one, {Location: wire.Location{Ranges: []wire.Range{{Range: 1}, {Range: 4}}}}})
	require.Equal(t, "north-1", got.Location.Ranges[0].Leader)
}

// R21: each process has its epochs confirmed by itself. One that refuses writes, or gets no answer of the witness, is not
// hidden behind one that was asked and does well, and is named.
func TestR21MergeEpochs(t *testing.T) {
	of := func(e *wire.Epochs) oneStatus { return oneStatus{Location: wire.Location{Epochs: e}} }
	well := &wire.Epochs{Confirmed: true, By: "witness", Witness: true, WitnessAddress: "third:1"}
	away := &wire.Epochs{Confirmed: true, By: "witness", Witness: true, WitnessAddress: "third:1", Waiting: "timeout", WaitingNodes: []string{"north-2"}, PartedSeconds: 7}
	refuses := &wire.Epochs{
		Witness: true, WitnessAddress: "third:1", Waiting: "refused", WaitingNodes: []string{"north-3"}, UnconfirmedNodes: []string{"north-3"},
		Refused: []wire.RefusedEpoch{{Account: "a"}},
	}
	got := merged([]oneStatus{of(well), of(nil), of(away), of(refuses), of(refuses)}).Location.Epochs
	require.Equal(t, &wire.Epochs{
		Witness: true, WitnessAddress: "third:1", Waiting: "timeout", WaitingNodes: []string{"north-2", "north-3", "north-3"},
		UnconfirmedNodes: []string{"north-3", "north-3"}, Refused: refuses.Refused, PartedSeconds: 7,
	}, got)
	require.True(t, well.Confirmed, "what was merged stays as it was")
	require.Equal(t, well, merged([]oneStatus{of(nil), of(well)}).Location.Epochs)
	require.False(t, merged([]oneStatus{of(refuses), of(well)}).Location.Epochs.Confirmed)
}

// A range elects a leader as long as all replicas that answer expect one; none does any more once one leads.
func TestMergeElecting(t *testing.T) {
	soon, never := true, false
	for _, c := range []struct {
		of   []wire.Range
		want *bool
	}{
		{[]wire.Range{{}, {Electing: &soon}}, &soon},
		{[]wire.Range{{Electing: &soon}, {Electing: &never}, {Electing: &soon}}, &never},
		{[]wire.Range{{Electing: &never}, {Electing: &soon}, {}}, &never},
		{[]wire.Range{{Electing: &soon}, {LeaderView: &wire.LeaderView{Leader: "north-1"}}, {Electing: &never}}, nil},
		{[]wire.Range{{LeaderView: &wire.LeaderView{Leader: "north-1"}}, {Electing: &never}}, nil},
		{[]wire.Range{{}, {}}, nil},
	} {
		var all []oneStatus
		for _, r := range c.of {
			all = append(all, oneStatus{Location: wire.Location{Ranges: []wire.Range{r}}})
		}
		require.Equal(t, c.want, merged(all).Location.Ranges[0].Electing, "%+v", c.of)
	}
}

// oneStatus is the status of one process of a location.
type oneStatus struct {
	Location wire.Location
	Link     wire.Link
	Accounts []wire.AccountStatus
}

// merged is mergeStatus.
func merged(of []oneStatus) oneStatus {
	var all []wire.Status
	for _, s := range of {
		all = append(all, wire.Status{Locations: []wire.Location{s.Location}, Link: s.Link, Accounts: s.Accounts})
	}
	out := mergeStatus(all)
	return oneStatus{out.Locations[0], out.Link, out.Accounts}
}
