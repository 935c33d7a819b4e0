package operator

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/services/storageerr"
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
		{nil, false, noNodeAnswers},
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

// The first node that answers answers for the location: others are not asked. A node that is away is
// passed over at once, one that hangs after nodeNext.
func TestReadAsksTheNextNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, north := newNetwork(t), newFake("north")
		north.accounts = []wire.Account{photos().Account}
		r := nodes.remote("north")
		read := func() time.Duration {
			t.Helper()
			begun := time.Now()
			list, err := accountsOf(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, north.accounts, list)
			require.Equal(t, []string{"accounts"}, north.calls())
			return time.Since(begun)
		}
		nodes.answers(north, 1)
		nodes.hangs("north", 2)
		require.Zero(t, read())
		nodes.away("north", 1)
		nodes.answers(north, 2)
		require.Zero(t, read())
		nodes.hangs("north", 1)
		require.Equal(t, nodeNext, read())
	})
}

// A location of which no node answers, be it away or hung, is one error for programs, and names the
// location. A node that failed outweighs one that does not answer.
func TestNoNodeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newNetwork(t)
		r := nodes.remote("north")
		nodes.hangs("north", 2)
		refused := func(err error) *wire.Error {
			t.Helper()
			var said *wire.Error
			require.ErrorAs(t, err, &said)
			return said
		}
		silent := func(err error) {
			t.Helper()
			said := refused(err)
			require.Equal(t, http.StatusServiceUnavailable, said.Status)
			require.Equal(t, "NoNodeAnswers", said.Code)
			require.Contains(t, said.Message, "north")
		}
		_, err := asks(t.Context(), r, &showKeys, wire.At{Account: "photos"})
		silent(err)
		events, err := asks(t.Context(), r, &listEvents, wire.At{})
		require.NoError(t, err)
		require.Equal(t, wire.EventList{Silent: []string{"north"}}, events)
		s, err := statusOf(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, wire.Unreachable, s.Locations[0].State)
		require.Len(t, s.Locations[0].Nodes, 3)
		require.Equal(t, wire.Node{Name: "north-3", State: wire.Unreachable}, s.Locations[0].Nodes[2])
		require.Contains(t, s.Locations[0].Warnings[0], "no node of location north answers")
		require.Equal(t, wire.LocationReadiness{Name: "north", State: wire.Unreachable, Reason: noNodeAnswers}, r.Readiness(t.Context()))

		nodes.away("north", 2)
		_, err = asks(t.Context(), r, &startLocation, wire.At{})
		silent(err)
		silent(setLink(t.Context(), r, wire.Link{State: wire.LinkCut}))
		_, err = asks(t.Context(), r, &stopNode, wire.At{Node: "north-2"})
		silent(err)
		_, err = asks(t.Context(), &Remote{Location: "north", Nodes: []Node{{ID: 1}}}, &stopLocation, wire.At{})
		silent(err)

		north := newFake("north")
		north.fail = storageerr.ServerBusy
		nodes.answers(north, 1)
		_, err = asks(t.Context(), r, &showKeys, wire.At{Account: "photos"})
		require.Equal(t, storageerr.ServerBusy.Code, refused(err).Code)
	})
}

// A refusal is an answer: the other nodes are not asked.
func TestRefusalIsAnAnswer(t *testing.T) {
	nodes, north, other := newNetwork(t), newFake("north"), newFake("north")
	nodes.answers(north, 1)
	nodes.answers(other, 2)
	_, err := accountOf(t.Context(), nodes.remote("north"), "photos")
	require.True(t, notFound(err), "%v", err)
	require.Empty(t, other.calls())
}

// A node that took an operation may have begun it, so no other node is asked after it: neither if it
// refuses nor if its answer is lost.
func TestOperationIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, north := newNetwork(t), newFake("north")
		alive := http.NewServeMux()
		alive.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
		alive.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		nodes.ports[address("north", 1)] = alive
		nodes.answers(north, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := asks(ctx, nodes.remote("north"), &stopLocation, wire.At{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, north.calls())

		busy := newFake("north")
		busy.fail = errors.New("disk on fire")
		nodes.answers(busy, 1)
		_, err = asks(t.Context(), nodes.remote("north"), &stopLocation, wire.At{})
		require.ErrorContains(t, err, "disk on fire")
		require.Empty(t, north.calls())
	})
}

// A node that does not answer at all, such as one that is paused, was asked for nothing: another one carries the operation out, or
// plans it, soon.
func TestOperationGoesToANodeThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, north := newNetwork(t), newFake("north")
		nodes.hangs("north", 1)
		nodes.answers(north, 2)
		begun := time.Now()
		_, err := asks(t.Context(), nodes.remote("north"), &stopLocation, wire.At{})
		require.NoError(t, err)
		require.Equal(t, []string{"stop"}, north.calls())
		require.Equal(t, nodeNext, time.Since(begun))

		nodes.hangs("north", 2)
		begun = time.Now()
		_, err = ask(t.Context(), Location(nodes.remote("north")), &failLocationOver, wire.At{}, wire.Failover{Type: wire.FailoverPlanned, DryRun: true})
		require.ErrorContains(t, err, "no node of location north answers on its admin port")
		require.Equal(t, nodeNext+nodeWait, time.Since(begun), "before a client gives up")
	})
}

// An operation on a node goes to that node's port, and to no other: not if the configuration lacks the
// node or its port.
func TestOperationOnANode(t *testing.T) {
	nodes, one, two := newNetwork(t), newFake("north"), newFake("north")
	nodes.answers(one, 1)
	nodes.answers(two, 2)
	r := nodes.remote("north")
	_, err := asks(t.Context(), r, &stopNode, wire.At{Node: "north-2"})
	require.NoError(t, err)
	require.Equal(t, "stop node north-2", two.operated())
	_, err = asks(t.Context(), r, &startNode, wire.At{Node: "north-3"})
	require.ErrorContains(t, err, "does not say where the admin port of north-3 is")
	_, err = asks(t.Context(), r, &startNode, wire.At{Node: "north-4"})
	require.ErrorContains(t, err, "could not find node north-4")
	require.Empty(t, one.calls())
}

// The location serves if any node says so, whichever nodes do not answer; which is asked of all at
// once.
func TestReadinessAsksAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, north := newNetwork(t), newFake("north")
		nodes.hangs("north", 1)
		nodes.answers(north, 2)
		begun := time.Now()
		got := nodes.remote("north").Readiness(t.Context())
		require.Equal(t, wire.LocationReadiness{Name: "north", State: wire.Running, Serving: true}, got)
		require.Equal(t, nodeWait, time.Since(begun))
	})
}

// A node of another location, which the configuration names by mistake, is not shown as one of this
// location.
func TestStatusOfAnotherLocation(t *testing.T) {
	nodes, south := newNetwork(t), newFake("south")
	nodes.answers(south, 1)
	nodes.ports[address("north", 1)] = nodes.ports[address("south", 1)]
	s, err := statusOf(t.Context(), nodes.remote("north"))
	require.NoError(t, err)
	require.EqualValues(t, "north", s.Locations[0].Name)
	require.Equal(t, wire.Unreachable, s.Locations[0].State)
	require.Equal(t, []string{"a node showed location south: the configuration names it as a node of north"}, s.Locations[0].Warnings)
}

// The last comparison is known to the node that compares, which is the one that a comparison would be asked of: no other one is
// asked in its place.
func TestVerifyIsAskedOfTheNodeThatCompares(t *testing.T) {
	nodes, north, other := newNetwork(t), newFake("north"), newFake("north")
	north.fail = storageerr.ServerBusy
	north.accounts, other.accounts = []wire.Account{photos().Account}, []wire.Account{photos().Account}
	nodes.answers(north, 1)
	nodes.answers(other, 2)
	_, err := asks(t.Context(), nodes.remote("north"), &showVerify, wire.At{Account: "photos"})
	require.Error(t, err)
	require.NotContains(t, other.calls(), "verified photos")
}
