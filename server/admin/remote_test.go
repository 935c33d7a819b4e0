package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// A location serves if one of its nodes does. Otherwise the reason is taken from a running node
// first (table).
func TestServing(t *testing.T) {
	stopped := wire.LocationReadiness{State: wire.Stopped, Reason: "node north-1 is stopped"}
	starting := wire.LocationReadiness{State: wire.Starting, Reason: "its bus starts"}
	waits := wire.LocationReadiness{State: wire.Running, Reason: "the blob range has no leader yet"}
	serves := wire.LocationReadiness{State: wire.Running, Serving: true, Ready: true}
	for _, c := range []struct {
		nodes  []wire.LocationReadiness
		serves bool
		reason string
	}{
		{nil, false, errNoNode.Message},
		{[]wire.LocationReadiness{stopped, starting, waits, serves}, true, ""},
		{[]wire.LocationReadiness{serves, stopped}, true, ""},
		{[]wire.LocationReadiness{waits, starting, stopped}, false, waits.Reason},
		{[]wire.LocationReadiness{starting, stopped}, false, starting.Reason},
		{[]wire.LocationReadiness{stopped}, false, stopped.Reason},
	} {
		got := serving(c.nodes)
		require.Equal(t, c.serves, got.Serving, "%+v", c.nodes)
		require.Equal(t, c.reason, got.Reason, "%+v", c.nodes)
	}
}

// A location behind a gateway is ready when each range has a leader and the statistics of each
// account that has its secondary there are known (table).
func TestNotReady(t *testing.T) {
	lag := 1.0
	l := wire.Location{Name: "south", State: wire.Running, Ranges: []wire.Range{{Service: "blob", LeaderView: &wire.LeaderView{}}}}
	live := wire.AccountStatus{
		Account:  wire.Account{Name: "a", Primary: "north", Secondary: "south"},
		Services: []wire.ServiceStatus{{Service: "blob", LagSeconds: &lag}},
	}
	unknown := live
	unknown.Services = []wire.ServiceStatus{{Service: "blob"}}
	silent := live
	silent.Services = nil
	leaderless := l
	leaderless.Ranges = []wire.Range{{Service: "blob"}}
	stopped := l
	stopped.State = wire.Unreachable
	for _, c := range []struct {
		l        wire.Location
		accounts []wire.AccountStatus
		why      string
	}{
		{l, []wire.AccountStatus{live}, ""},
		{l, nil, "no account is made yet"},
		{l, []wire.AccountStatus{live, unknown}, "Last Sync Time of a (blob) is not known yet"},
		{l, []wire.AccountStatus{silent}, "Last Sync Time of a is not known yet"},
		{leaderless, []wire.AccountStatus{live}, "the blob range has no leader yet"},
		{stopped, []wire.AccountStatus{live}, "no node of the location runs and answers; see antipodectl status"},
	} {
		require.Equal(t, c.why, notReady(c.l, c.accounts))
	}
}
