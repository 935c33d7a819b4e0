package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/storageerr"
	"antipode/stamp/fetch"
	stampnode "antipode/stamp/node"
)

// process is one process of the location north: what it runs, its server, and its calls to the
// others.
type process struct {
	answers // Calls that a test does not expect panic.

	id   geo.NodeID
	all  processes
	link wire.Link
	// fail is the error of operations. away: the process refuses calls; hangs: it takes them and
	// never answers.
	fail        error
	away, hangs bool
	// late, if set, delays each call and each answer, and opens the opening of a clone.
	late, opens func()
	// confirmed: its epochs were, by an
	confirmed bool

	mu       sync.Mutex
	running  bool
	asked    []string
	clones   []wire.Clone
	accounts []geo.Account
	handlers map[string]stampnode.CallHandler
}

// processes are the processes of a location by node, with a network between them.
type processes map[geo.NodeID]*process

// three returns the processes of three nodes that run, and the view that each has of the location.
func three(leader *geo.NodeID) (processes, map[geo.NodeID]*Members) {
	all, views := processes{}, map[geo.NodeID]*Members{}
	for _, id := range []geo.NodeID{1, 2, 3} {
		p := &process{id: id, all: all, running: true, answers: answers{}, handlers: map[string]stampnode.CallHandler{}, link: wire.Link{State: wire.LinkUp}}
		all[id] = p
		p.serve()
		views[id] = NewMembers(MembersOptions{
			Own: p, Server: fakeServer{p}, Self: id, Nodes: []geo.NodeID{1, 2, 3}, Calls: p,
			CatalogLeader: func() (geo.NodeID, bool) { return *leader, *leader != 0 },
			Clones: func() []wire.Clone {
				p.mu.Lock()
				defer p.mu.Unlock()
				return slices.Clone(p.clones)
			},
		})
	}
	return all, views
}

// CallProcess implements calls.
func (p *process) CallProcess(ctx context.Context, to geo.NodeID, method string, body []byte) ([]byte, error) {
	callee := p.all[to]
	if p.late != nil {
		p.late()
		defer p.late()
	}
	if callee.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if callee.away {
		return nil, fmt.Errorf("process of node %d: %w", to, stampnode.ErrUnreachable)
	}
	does := callee.handlers[method]
	if does == nil {
		return nil, fmt.Errorf("process of node %d: %w", to, fetch.ErrNoHandler) // As over the wire.
	}
	out, err := does(ctx, body)
	if err != nil {
		err = errors.New(fmt.Sprint("process of node ", to, ": ", err)) // The identity of other errors is lost on the way.
	}
	return out, err
}

// HandleProcess implements calls.
func (p *process) HandleProcess(method string, f stampnode.CallHandler) { p.handlers[method] = f }

func (p *process) Name() geo.Location { return "north" }

func (p *process) Readiness(context.Context) wire.LocationReadiness {
	return wire.LocationReadiness{Name: "north"}
}

func (p *process) do(ctx context.Context, q question) error { return p.answer(ctx, q) }

// serve sets what the process does in place of operations.
func (p *process) serve() {
	does(p.answers, &showStatus, p.status)
	does(p.answers, &listEvents, func(context.Context, wire.At, wire.None) (wire.EventList, error) {
		return wire.EventList{Events: []wire.Event{{Node: wire.NodeName("north", p.id), Number: 1}}}, nil
	})
	does(p.answers, &showFlows, p.flows)
	does(p.answers, &createAccount, p.create)
	does(p.answers, &updateAccount, p.update)
	does(p.answers, &confirmEpochs, p.override)
	does(p.answers, &showClone, func(_ context.Context, at wire.At, _ wire.None) (wire.Clone, error) {
		return p.clone(at.Account, false)
	})
	does(p.answers, &dropClone, func(_ context.Context, at wire.At, _ wire.None) (wire.Clone, error) { return p.clone(at.Account, true) })
	does(p.answers, &openClone, func(ctx context.Context, at wire.At, in wire.OpenClone) (wire.Clone, error) {
		return p.openClone(ctx, at.Account, in)
	})
	for state, o := range map[wire.LinkState]*operation[wire.None, wire.Link]{wire.LinkCut: &cutLink, wire.LinkUp: &healLink} {
		does(p.answers, o, func(context.Context, wire.At, wire.None) (wire.Link, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.link = wire.Link{State: state}
			return p.link, p.fail
		})
	}
}

// fakeServer is the server of a process.
type fakeServer struct{ p *process }

func (s fakeServer) Running() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.running
}

func (s fakeServer) Begin(context.Context) error { return s.p.operate("begin", true) }
func (s fakeServer) Stop() error                 { return s.p.operate("stop", false) }

func (p *process) operate(what string, runs bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, what)
	switch {
	case p.fail != nil:
		return p.fail
	case runs && p.running:
		return location.ErrRuns
	}
	p.running = runs
	return nil
}

func (p *process) status(context.Context, wire.At, wire.None) (wire.Status, error) {
	state := wire.Stopped
	if (fakeServer{p}).Running() {
		state = wire.Running
	}
	node := wire.Node{Name: wire.NodeName("north", p.id), State: state}
	return wire.Status{Locations: []wire.Location{{Name: "north", State: state, Nodes: []wire.Node{node}}}, Link: p.link}, p.fail
}

func (p *process) create(_ context.Context, _ wire.At, a wire.NewAccount) (wire.AccountInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.accounts, a.Name) {
		return wire.AccountInfo{}, fmt.Errorf("catalog: %w", storageerr.AccountAlreadyExists)
	}
	p.accounts = append(p.accounts, a.Name)
	return wire.AccountInfo{Account: wire.Account{Name: a.Name, Primary: "north"}}, p.fail
}

func states(s wire.Status) (out []wire.State) {
	for _, n := range s.Locations[0].Nodes {
		out = append(out, n.State)
	}
	return out
}

func eventsOf(t *testing.T, l Location) wire.EventList {
	t.Helper()
	list, err := asks(t.Context(), l, &listEvents, wire.At{})
	require.NoError(t, err)
	return list
}

// Each node shows the whole location. A process that does not answer, be it away, hung or failed, is
// shown as unreachable after peerWait at the latest; its events are missing.
//
// Capability: Build and run: A location that is away is named.
func TestMembersShowTheLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, views := three(new(geo.NodeID))
		for id, m := range views {
			s, err := statusOf(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, []wire.State{wire.Running, wire.Running, wire.Running}, states(s), "as node %d shows it", id)
			require.Len(t, eventsOf(t, m).Events, 3)
		}
		all[1].running = false
		all[3].link = wire.Link{State: wire.LinkCut}
		s, err := statusOf(t.Context(), views[1])
		require.NoError(t, err)
		require.Equal(t, []wire.State{wire.Stopped, wire.Running, wire.Running}, states(s))
		require.Equal(t, wire.Running, s.Locations[0].State)
		require.Equal(t, wire.LinkCut, s.Link.State)

		all[2].away, all[3].hangs = true, true
		begun := time.Now()
		s, err = statusOf(t.Context(), views[1])
		require.NoError(t, err)
		require.Equal(t, []wire.State{wire.Stopped, wire.Unreachable, wire.Unreachable}, states(s))
		require.Equal(t, peerWait, time.Since(begun))
		require.Len(t, eventsOf(t, views[1]).Events, 1)
		require.Equal(t, []string{"north-2", "north-3"}, eventsOf(t, views[1]).Silent)

		all[2].away, all[2].fail = false, errors.New("disk on fire")
		s, err = statusOf(t.Context(), views[1])
		require.NoError(t, err)
		require.Equal(t, wire.Unreachable, s.Locations[0].Nodes[1].State)
		_, err = statusOf(t.Context(), views[2])
		require.ErrorIs(t, err, all[2].fail, "a process that cannot show itself shows nothing")
	})
}

// While the nodes of a location are upgraded one by one each shows the whole location: one of the earlier version answers its
// own calls alone, and makes them.
func TestMembersOfTwoVersions(t *testing.T) {
	leader := geo.NodeID(1)
	all, views := three(&leader)
	delete(all[3].handlers, methodCall)
	all[3].running = false
	s, err := statusOf(t.Context(), views[1])
	require.NoError(t, err)
	require.Equal(t, []wire.State{wire.Running, wire.Running, wire.Stopped}, states(s))
	require.Len(t, eventsOf(t, views[1]).Events, 3)
	require.Empty(t, eventsOf(t, views[1]).Silent)
	f, err := flowOf(t.Context(), views[1], "photos")
	require.NoError(t, err)
	require.Equal(t, wire.LinkCut, f.Link.State, "as node 3 has it")
	require.Empty(t, f.Silent)

	var earlier struct {
		Location struct {
			Nodes []struct{ Name, State string }
		}
	}
	body, err := all[3].CallProcess(t.Context(), 1, methodView, nil)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &earlier))
	require.Len(t, earlier.Location.Nodes, 1, "of that process alone")
	require.Equal(t, "north-1", earlier.Location.Nodes[0].Name)
	var events []wire.Event
	body, err = all[3].CallProcess(t.Context(), 1, methodEvents, nil)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &events))
	require.Equal(t, []wire.Event{{Node: "north-1", Number: 1}}, events)
	var two wire.Flow
	body, err = all[3].CallProcess(t.Context(), 2, methodFlow, []byte("photos"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &two))
	require.Equal(t, "north-2", two.Ranges[1].Leader)
	require.Nil(t, two.Ranges[0].Source, "of that process alone")
}

// Nodes of two versions refuse each other what only nodes of one version can do together. The node that does not know a call does
// nothing, and is never taken for a process that is away.
func TestCallsBetweenTwoVersions(t *testing.T) {
	leader := geo.NodeID(3)
	all, views := three(&leader)
	delete(all[3].handlers, methodCall)
	refuses := func(err error) {
		t.Helper()
		var said *wire.Error
		require.ErrorAs(t, err, &said)
		require.Equal(t, wire.CodeOtherVersion, said.Code)
		require.Contains(t, said.Message, "node north-3 does not know this call")
	}
	_, err := ask(t.Context(), Location(views[1]), &createAccount, wire.At{}, wire.NewAccount{Name: "photos"})
	refuses(err)
	refuses(setLink(t.Context(), views[1], wire.Link{State: wire.LinkCut}))
	_, err = asks(t.Context(), views[1], &confirmEpochs, wire.At{})
	refuses(err)
	refuses(nodeAsked(t, views[1], &stopNode, 3))
	require.Empty(t, all[3].asked)

	// The clones of the earlier version: one call for all, which only lists here.
	all[1].clones = []wire.Clone{{Account: "acct", Node: "north-1"}}
	for _, order := range []string{`{"account":"acct","drop":true}`, `{"account":"other","open":{}}`} {
		body, err := all[3].CallProcess(t.Context(), 1, methodClones, []byte(order))
		require.NoError(t, err)
		require.Contains(t, string(body), `"code":"`+wire.CodeOtherVersion+`"`, order)
	}
	require.Len(t, all[1].clones, 1)
	body, err := all[3].CallProcess(t.Context(), 1, methodClones, []byte("{}"))
	require.NoError(t, err)
	require.Contains(t, string(body), `"clones":[{`)
}

// An operation on a node is carried out by that node's process, whichever node is asked; its error
// names the node.
func TestOperationOnANodeOfTheLocation(t *testing.T) {
	all, views := three(new(geo.NodeID))
	for _, asked := range []geo.NodeID{1, 2} {
		require.NoError(t, nodeAsked(t, views[asked], &stopNode, 2))
		require.Error(t, nodeAsked(t, views[asked], &startNode, 1), "it runs")
		require.NoError(t, nodeAsked(t, views[asked], &startNode, 2))
	}
	require.Equal(t, []string{"stop", "begin", "stop", "begin"}, all[2].asked)
	require.Empty(t, all[3].asked)
	_, noSupport := asks(t.Context(), views[1], &nodeSupport, wire.At{Node: "north-4"})
	for _, err := range []error{noSupport, nodeAsked(t, views[1], &stopNode, 4)} {
		var said *wire.Error
		require.ErrorAs(t, err, &said)
		require.Equal(t, wire.CodeNoNode, said.Code)
		require.Contains(t, said.Message, "north-4")
	}
	all[2].away = true
	require.ErrorIs(t, nodeAsked(t, views[1], &stopNode, 2), stampnode.ErrUnreachable)
	all[2].away, all[2].fail = false, errors.New("disk on fire")
	require.ErrorContains(t, nodeAsked(t, views[1], &stopNode, 2), "node 2: disk on fire")
}

// A location is stopped and started in all its processes; a process that is already as asked for is
// left alone, also if it was started meanwhile. Errors of several processes are all returned.
func TestOperationOnTheWholeLocation(t *testing.T) {
	all, views := three(new(geo.NodeID))
	all[3].running = false
	require.NoError(t, locationAsked(t, views[1], &stopLocation))
	require.NoError(t, locationAsked(t, views[1], &stopLocation))
	require.Equal(t, [][]string{{"stop"}, {"stop"}, nil}, [][]string{all[1].asked, all[2].asked, all[3].asked})
	require.NoError(t, locationAsked(t, views[2], &startLocation))
	require.NoError(t, locationAsked(t, views[2], &startLocation))
	require.Equal(t, []string{"stop", "begin"}, all[1].asked)

	all[1].fail, all[2].running, all[2].fail = nil, false, fmt.Errorf("node north-2 %w", location.ErrRuns)
	require.NoError(t, locationAsked(t, views[2], &startLocation), "it was started between the check and the start")

	all[1].fail, all[3].away = errors.New("disk on fire"), true
	err := locationAsked(t, views[2], &stopLocation)
	require.ErrorContains(t, err, "node 1: disk on fire")
	require.ErrorIs(t, err, stampnode.ErrUnreachable)
}

// The link is cut and healed in all processes. A process that is away is passed over, because it comes
// back with a link that is up; an error of another process is returned beside it.
func TestLinkOfAllProcesses(t *testing.T) {
	all, views := three(new(geo.NodeID))
	all[3].away = true
	for _, state := range []wire.LinkState{wire.LinkCut, wire.LinkUp} {
		require.NoError(t, setLink(t.Context(), views[1], wire.Link{State: state}))
		require.Equal(t, state, all[1].link.State)
		require.Equal(t, state, all[2].link.State)
	}
	all[2].fail = errors.New("disk on fire")
	require.ErrorContains(t, setLink(t.Context(), views[1], wire.Link{State: wire.LinkCut}), "node 2: disk on fire")
}

func (p *process) override(context.Context, wire.At, wire.None) (wire.Epochs, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confirmed = true
	return wire.Epochs{Confirmed: true}, p.fail
}

// R21: an operator's word reaches every process of the location that runs, whichever node is asked: with a witness no
// process takes it over from another. One that is away or stopped is passed over, since it starts without confirmed
// epochs; one that hangs or fails is named.
func TestR21OverrideReachesAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []geo.NodeID{1, 2, 3} {
			all, views := three(new(geo.NodeID))
			e, err := asks(t.Context(), views[first], &confirmEpochs, wire.At{})
			require.NoError(t, err)
			require.True(t, e.Confirmed)
			for id, p := range all {
				require.True(t, p.confirmed, "node %d, by node %d", id, first)
			}
		}
		all, views := three(new(geo.NodeID))
		all[2].away, all[3].running = true, false
		_, err := asks(t.Context(), views[1], &confirmEpochs, wire.At{})
		require.NoError(t, err)
		require.False(t, all[3].confirmed, "it is stopped")
		all[2].away, all[2].hangs = false, true
		begun := time.Now()
		_, err = asks(t.Context(), views[1], &confirmEpochs, wire.At{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, peerWait, time.Since(begun))
		all[2].hangs, all[2].fail = false, errors.New("disk on fire")
		_, err = asks(t.Context(), views[1], &confirmEpochs, wire.At{})
		require.ErrorContains(t, err, "node 2: disk on fire")
	})
}

// The node that leads the catalog makes an account, whichever node is asked, and a refusal keeps its
// code on the way. While no leader is known or it does not answer, nothing happens and the caller may
// try again.
func TestCreateAccountAtTheCatalogsLeader(t *testing.T) {
	var leader geo.NodeID
	all, views := three(&leader)
	create := func(asked geo.NodeID, name geo.Account) (wire.Account, error) {
		a, err := ask(t.Context(), Location(views[asked]), &createAccount, wire.At{}, wire.NewAccount{Name: name})
		return a.Account, err
	}
	_, err := create(1, "photos")
	require.ErrorIs(t, err, storageerr.ServerBusy)

	leader = 2
	a, err := create(2, "photos")
	require.NoError(t, err)
	require.Equal(t, wire.Account{Name: "photos", Primary: "north"}, a)
	a, err = create(1, "mail")
	require.NoError(t, err)
	require.Equal(t, wire.Account{Name: "mail", Primary: "north"}, a)
	require.Equal(t, []geo.Account{"photos", "mail"}, all[2].accounts)
	for _, asked := range []geo.NodeID{1, 2} {
		_, err = create(asked, "photos")
		require.ErrorIs(t, err, storageerr.AccountAlreadyExists)
	}

	leader = 3
	all[3].away = true
	_, err = create(1, "films")
	require.ErrorIs(t, err, storageerr.ServerBusy)
	all[3].away, all[3].fail = false, errors.New("disk on fire")
	_, err = create(1, "films")
	require.ErrorContains(t, err, "node 3: disk on fire")
}

func (p *process) update(_ context.Context, at wire.At, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.accounts, at.Account) {
		return wire.AccountUpdated{}, fmt.Errorf("catalog: %w", storageerr.OperationInProgress)
	}
	out := wire.AccountUpdated{Behind: "node " + fmt.Sprint(p.id)}
	out.Name, out.Redundancy = at.Account, u.Redundancy
	return out, p.fail
}

// The node that leads the catalog changes an account, whichever node is asked, and a refusal keeps its
// code on the way.
func TestUpdateAccountAtTheCatalogsLeader(t *testing.T) {
	var leader geo.NodeID
	all, views := three(&leader)
	update := func(asked geo.NodeID, name geo.Account) (wire.AccountUpdated, error) {
		return ask(t.Context(), Location(views[asked]), &updateAccount, wire.At{Account: name}, wire.UpdateAccount{Redundancy: "GRS"})
	}
	_, err := update(1, "photos")
	require.ErrorIs(t, err, storageerr.ServerBusy)
	leader, all[2].accounts = 2, []geo.Account{"photos"}
	for _, asked := range []geo.NodeID{1, 2} {
		a, err := update(asked, "photos")
		require.NoError(t, err)
		require.Equal(t, "GRS", a.Redundancy)
		require.Equal(t, "node 2", a.Behind)
		_, err = update(asked, "mail")
		require.ErrorIs(t, err, storageerr.OperationInProgress)
		all[2].fail = &wire.Error{Status: http.StatusConflict, Code: wire.CodeSecondaryAhead, Message: "52 streams"}
		a, err = update(asked, "photos")
		require.Equal(t, all[2].fail, err)
		require.Equal(t, "node 2", a.Behind, "what a refusal has found")
		all[2].fail = nil
	}
	all[2].away = true
	_, err = update(1, "photos")
	require.ErrorIs(t, err, storageerr.ServerBusy)
}

// A call that is not of the form of this version is refused, and nothing is done.
func TestMalformedCalls(t *testing.T) {
	all, _ := three(new(geo.NodeID))
	for _, body := range []string{"{", `{"name":"account.create","in":7}`, `{"name":"account.create"}`} {
		_, err := all[1].CallProcess(t.Context(), 2, methodCall, []byte(body))
		require.ErrorContains(t, err, "malformed")
	}
	_, err := all[1].CallProcess(t.Context(), 2, methodCall, []byte(`{"name":"account.eat","in":{}}`))
	require.ErrorContains(t, err, `no call "account.eat"`)
	require.Empty(t, all[2].asked)
	require.Empty(t, all[2].accounts)
}

// nodeAsked has a location start or stop a node.
func nodeAsked(t *testing.T, l Location, o *operation[wire.None, wire.Changed], id geo.NodeID) error {
	t.Helper()
	_, err := asks(t.Context(), l, o, wire.At{Node: wire.NodeName("north", id)})
	return err
}

// locationAsked starts or stops a location.
func locationAsked(t *testing.T, l Location, o *operation[wire.None, wire.Changed]) error {
	t.Helper()
	_, err := asks(t.Context(), l, o, wire.At{})
	return err
}
