package node

import (
	"context"
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
	"antipode/server/operator"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// process is one process of the location north: what it runs, its server, and its calls to the
// others.
type process struct {
	operator.Location // Calls that a test does not expect panic.

	id   geo.NodeID
	all  processes
	link wire.Link
	// fail is the error of operations. away: the process refuses calls; hangs: it takes them and
	// never answers.
	fail        error
	away, hangs bool
	// late, if set, delays each call and each answer, and opens the opening of a clone.
	late, opens func()
	// confirmed: its epochs were, by an operator.
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
func three(leader *geo.NodeID) (processes, map[geo.NodeID]*members) {
	all, views := processes{}, map[geo.NodeID]*members{}
	for _, id := range []geo.NodeID{1, 2, 3} {
		p := &process{id: id, all: all, running: true, handlers: map[string]stampnode.CallHandler{}, link: wire.Link{State: wire.LinkUp}}
		all[id] = p
		views[id] = &members{
			Location: p, server: fakeServer{p}, self: id, nodes: []geo.NodeID{1, 2, 3}, calls: p,
			catalogLeader: func() (geo.NodeID, bool) { return *leader, *leader != 0 },
		}
		views[id].serve()
		views[id].serveClones(func() []wire.Clone {
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.Clone(p.clones)
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
	out, err := callee.handlers[method](ctx, body)
	if err != nil {
		err = errors.New(fmt.Sprint("process of node ", to, ": ", err)) // The identity of other errors is lost on the way.
	}
	return out, err
}

// HandleProcess implements calls.
func (p *process) HandleProcess(method string, f stampnode.CallHandler) { p.handlers[method] = f }

func (p *process) Name() geo.Location { return "north" }

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

func (p *process) SetLink(_ context.Context, l wire.Link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
	return p.fail
}

func (p *process) Status(context.Context) (operator.Status, error) {
	state := wire.Stopped
	if (fakeServer{p}).Running() {
		state = wire.Running
	}
	node := wire.Node{Name: wire.NodeName("north", p.id), State: state}
	return operator.Status{Location: wire.Location{Name: "north", State: state, Nodes: []wire.Node{node}}, Link: p.link}, p.fail
}

func (p *process) Events(context.Context) wire.EventList {
	return wire.EventList{Events: []wire.Event{{Node: wire.NodeName("north", p.id), Number: 1}}}
}

func (p *process) CreateAccount(_ context.Context, a wire.NewAccount) (wire.Account, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.accounts, a.Name) {
		return wire.Account{}, fmt.Errorf("catalog: %w", storageerr.AccountAlreadyExists)
	}
	p.accounts = append(p.accounts, a.Name)
	return wire.Account{Name: a.Name, Primary: "north"}, p.fail
}

func (p *process) Account(_ context.Context, name geo.Account) (wire.Account, error) {
	return wire.Account{Name: name, Redundancy: "from the catalog"}, nil
}

func states(s operator.Status) (out []wire.State) {
	for _, n := range s.Location.Nodes {
		out = append(out, n.State)
	}
	return out
}

// Each node shows the whole location. A process that does not answer, be it away, hung or failed, is
// shown as unreachable after peerWait at the latest; its events are missing.
func TestMembersShowTheLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, views := three(new(geo.NodeID))
		for id, m := range views {
			s, err := m.Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, []wire.State{wire.Running, wire.Running, wire.Running}, states(s), "as node %d shows it", id)
			require.Len(t, m.Events(t.Context()).Events, 3)
		}
		all[1].running = false
		all[3].link = wire.Link{State: wire.LinkCut}
		s, err := views[1].Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, []wire.State{wire.Stopped, wire.Running, wire.Running}, states(s))
		require.Equal(t, wire.Running, s.Location.State)
		require.Equal(t, wire.LinkCut, s.Link.State)

		all[2].away, all[3].hangs = true, true
		begun := time.Now()
		s, err = views[1].Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, []wire.State{wire.Stopped, wire.Unreachable, wire.Unreachable}, states(s))
		require.Equal(t, peerWait, time.Since(begun))
		require.Len(t, views[1].Events(t.Context()).Events, 1)
		require.Equal(t, []string{"north-2", "north-3"}, views[1].Events(t.Context()).Silent)

		all[2].away, all[2].fail = false, errors.New("disk on fire")
		s, err = views[1].Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, wire.Unreachable, s.Location.Nodes[1].State)
		_, err = views[2].Status(t.Context())
		require.ErrorIs(t, err, all[2].fail, "a process that cannot show itself shows nothing")
	})
}

// An operation on a node is carried out by that node's process, whichever node is asked; its error
// names the node.
func TestOperationOnANodeOfTheLocation(t *testing.T) {
	all, views := three(new(geo.NodeID))
	for _, asked := range []geo.NodeID{1, 2} {
		require.NoError(t, views[asked].StopNode(t.Context(), 2))
		require.Error(t, views[asked].StartNode(t.Context(), 1), "it runs")
		require.NoError(t, views[asked].StartNode(t.Context(), 2))
	}
	require.Equal(t, []string{"stop", "begin", "stop", "begin"}, all[2].asked)
	require.Empty(t, all[3].asked)
	_, noSupport := views[1].Support(t.Context(), 4)
	for _, err := range []error{noSupport, views[1].StopNode(t.Context(), 4)} {
		var said *wire.Error
		require.ErrorAs(t, err, &said)
		require.Equal(t, wire.CodeNoNode, said.Code)
		require.Contains(t, said.Message, "north-4")
	}
	all[2].away = true
	require.ErrorIs(t, views[1].StopNode(t.Context(), 2), stampnode.ErrUnreachable)
	all[2].away, all[2].fail = false, errors.New("disk on fire")
	require.ErrorContains(t, views[1].StopNode(t.Context(), 2), "node 2: disk on fire")
}

// A location is stopped and started in all its processes; a process that is already as asked for is
// left alone, also if it was started meanwhile. Errors of several processes are all returned.
func TestOperationOnTheWholeLocation(t *testing.T) {
	all, views := three(new(geo.NodeID))
	all[3].running = false
	require.NoError(t, views[1].Stop(t.Context()))
	require.NoError(t, views[1].Stop(t.Context()))
	require.Equal(t, [][]string{{"stop"}, {"stop"}, nil}, [][]string{all[1].asked, all[2].asked, all[3].asked})
	require.NoError(t, views[2].Start(t.Context()))
	require.NoError(t, views[2].Start(t.Context()))
	require.Equal(t, []string{"stop", "begin"}, all[1].asked)

	all[1].fail, all[2].running, all[2].fail = nil, false, fmt.Errorf("node north-2 %w", location.ErrRuns)
	require.NoError(t, views[2].Start(t.Context()), "it was started between the check and the start")

	all[1].fail, all[3].away = errors.New("disk on fire"), true
	err := views[2].Stop(t.Context())
	require.ErrorContains(t, err, "node 1: disk on fire")
	require.ErrorIs(t, err, stampnode.ErrUnreachable)
}

// The link is cut and healed in all processes. A process that is away is passed over, because it comes
// back with a link that is up; an error of another process is returned beside it.
func TestLinkOfAllProcesses(t *testing.T) {
	all, views := three(new(geo.NodeID))
	all[3].away = true
	for _, state := range []wire.LinkState{wire.LinkCut, wire.LinkUp} {
		require.NoError(t, views[1].SetLink(t.Context(), wire.Link{State: state}))
		require.Equal(t, state, all[1].link.State)
		require.Equal(t, state, all[2].link.State)
	}
	all[2].fail = errors.New("disk on fire")
	require.ErrorContains(t, views[1].SetLink(t.Context(), wire.Link{State: wire.LinkCut}), "node 2: disk on fire")
}

// OverrideEpochs implements operator.Location.
func (p *process) OverrideEpochs(context.Context) (wire.Epochs, error) {
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
		for _, asked := range []geo.NodeID{1, 2, 3} {
			all, views := three(new(geo.NodeID))
			e, err := views[asked].OverrideEpochs(t.Context())
			require.NoError(t, err)
			require.True(t, e.Confirmed)
			for id, p := range all {
				require.True(t, p.confirmed, "node %d, by node %d", id, asked)
			}
		}
		all, views := three(new(geo.NodeID))
		all[2].away, all[3].running = true, false
		_, err := views[1].OverrideEpochs(t.Context())
		require.NoError(t, err)
		require.False(t, all[3].confirmed, "it is stopped")
		all[2].away, all[2].hangs = false, true
		begun := time.Now()
		_, err = views[1].OverrideEpochs(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, peerWait, time.Since(begun))
		all[2].hangs, all[2].fail = false, errors.New("disk on fire")
		_, err = views[1].OverrideEpochs(t.Context())
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
		return views[asked].CreateAccount(t.Context(), wire.NewAccount{Name: name})
	}
	_, err := create(1, "photos")
	require.ErrorIs(t, err, storageerr.ServerBusy)

	leader = 2
	a, err := create(2, "photos")
	require.NoError(t, err)
	require.Equal(t, wire.Account{Name: "photos", Primary: "north"}, a)
	a, err = create(1, "mail")
	require.NoError(t, err)
	require.Equal(t, wire.Account{Name: "mail", Redundancy: "from the catalog"}, a)
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

func (p *process) UpdateAccount(_ context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.accounts, name) {
		return wire.AccountUpdated{}, fmt.Errorf("catalog: %w", storageerr.OperationInProgress)
	}
	out := wire.AccountUpdated{Behind: "node " + fmt.Sprint(p.id)}
	out.Name, out.Redundancy = name, u.Redundancy
	return out, p.fail
}

// The node that leads the catalog changes an account, whichever node is asked, and a refusal keeps its
// code on the way.
func TestUpdateAccountAtTheCatalogsLeader(t *testing.T) {
	var leader geo.NodeID
	all, views := three(&leader)
	update := func(asked geo.NodeID, name geo.Account) (wire.AccountUpdated, error) {
		return views[asked].UpdateAccount(t.Context(), name, wire.UpdateAccount{Redundancy: "GRS"})
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
	for _, method := range []string{methodOrder, methodCreate, methodUpdate} {
		_, err := all[1].CallProcess(t.Context(), 2, method, []byte("{"))
		require.ErrorContains(t, err, "malformed")
	}
	require.Empty(t, all[2].asked)
	require.Empty(t, all[2].accounts)
}
