package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/server/operator"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// Calls between the processes of a location for operators. The names are on the wire: never
// rename one.
const (
	methodView   = "admin.view"
	methodEvents = "admin.events"
	methodOrder  = "admin.order"
	methodCreate = "admin.createAccount"
	methodFlow   = "admin.flow"
)

// peerWait bounds a read from another process: a paused process never answers.
const peerWait = 2 * time.Second

// members implements operator.Location for the location of this node. What it shows is what all
// processes of the location report. An operation on another node is a call to its process.
type members struct {
	// Location is the part of the location that this process runs.
	operator.Location
	server operator.Server
	self   geo.NodeID
	// nodes are all nodes of the location, self included, in order.
	nodes []geo.NodeID
	calls calls
	// catalogLeader returns the node that leads the catalog, if that is known.
	catalogLeader func() (id geo.NodeID, known bool)
	claims        cloneClaims
}

// calls are the calls between the processes of the location: see transport.Transport.
type calls interface {
	CallProcess(ctx context.Context, to geo.NodeID, method string, body []byte) ([]byte, error)
	HandleProcess(method string, f stampnode.CallHandler)
}

// operation is an operator's call to the process of a node.
type operation struct {
	Start bool `json:"start,omitempty"`
	Stop  bool `json:"stop,omitempty"`
	// Lenient makes it no error if the node is already as asked for.
	Lenient bool `json:"lenient,omitempty"`
	// Link is the new state of this end of the link.
	Link *wire.Link `json:"link,omitempty"`
	// Epochs confirms the epochs of the process (R21).
	Epochs bool `json:"epochs,omitempty"`
}

// run carries out an operation on this process. A start may go on after run has returned: see
// location.Server.Begin.
func (m *members) run(ctx context.Context, o operation) error {
	switch {
	case o.Link != nil:
		return m.Location.SetLink(ctx, *o.Link)
	case o.Epochs && !m.server.Running():
		return nil // It has nothing that could be confirmed, and once it starts nothing is.
	case o.Epochs:
		_, err := m.Location.OverrideEpochs(ctx)
		return err
	}
	if o.Lenient && o.Start == m.server.Running() {
		return nil
	}
	if !o.Start {
		return m.server.Stop()
	}
	err := m.server.Begin(ctx)
	if o.Lenient && errors.Is(err, location.ErrRuns) {
		return nil // It was started meanwhile.
	}
	return err
}

// runAt has the process of a node carry out an operation.
func (m *members) runAt(ctx context.Context, id geo.NodeID, o operation) error {
	if id == m.self {
		return m.run(ctx, o)
	}
	if !slices.Contains(m.nodes, id) {
		return wire.NoNode(m.Name(), id)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = m.calls.CallProcess(ctx, id, methodOrder, body)
	return err
}

// runAtAll has all processes of the location carry out an operation, at once.
func (m *members) runAtAll(ctx context.Context, o operation) error {
	errs := make([]error, len(m.nodes))
	var given sync.WaitGroup
	for i, id := range m.nodes {
		given.Go(func() {
			errs[i] = m.runAt(ctx, id, o)
			if (o.Link != nil || o.Epochs) && errors.Is(errs[i], stampnode.ErrUnreachable) {
				errs[i] = nil // A process comes back with a link that is up, and with epochs that are not confirmed.
			}
		})
	}
	given.Wait()
	return errors.Join(errs...)
}

// askPeers asks the other processes of the location, all at once, for a T as JSON. silent
// replaces the answer of a process that gives none.
func askPeers[T any](ctx context.Context, m *members, method string, question []byte, silent func(geo.NodeID, error) T) []T {
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	var answers []*T
	var asked sync.WaitGroup
	for _, id := range m.nodes {
		if id == m.self {
			continue
		}
		answer := new(T)
		answers = append(answers, answer)
		asked.Go(func() {
			body, err := m.calls.CallProcess(ctx, id, method, question)
			if err == nil {
				err = json.Unmarshal(body, answer)
			}
			if err != nil {
				*answer = silent(id, err)
			}
		})
	}
	asked.Wait()
	out := make([]T, 0, len(answers))
	for _, a := range answers {
		out = append(out, *a)
	}
	return out
}

// Status implements operator.Location. A process that does not answer is shown as unreachable.
func (m *members) Status(ctx context.Context) (operator.Status, error) {
	own, err := m.Location.Status(ctx)
	if err != nil {
		return own, err
	}
	peers := askPeers(ctx, m, methodView, nil, func(id geo.NodeID, _ error) (s operator.Status) {
		s.Location.Nodes = []wire.Node{{Name: wire.NodeName(m.Name(), id), State: wire.Unreachable}}
		return s
	})
	return operator.Merge(append([]operator.Status{own}, peers...)), nil
}

// Events implements operator.Location.
func (m *members) Events(ctx context.Context) wire.EventList {
	out := m.Location.Events(ctx)
	var mu sync.Mutex // Peers are asked at once.
	silent := func(id geo.NodeID, _ error) []wire.Event {
		mu.Lock()
		defer mu.Unlock()
		out.Silent = append(out.Silent, wire.NodeName(m.Name(), id))
		return nil
	}
	for _, list := range askPeers(ctx, m, methodEvents, nil, silent) {
		out.Events = append(out.Events, list...)
	}
	slices.Sort(out.Silent)
	return out
}

// CreateAccount implements operator.Location. The node with the catalog's leader makes the account.
func (m *members) CreateAccount(ctx context.Context, a wire.NewAccount) (wire.Account, error) {
	switch id, known := m.catalogLeader(); {
	case !known:
		return wire.Account{}, storageerr.ServerBusy
	case id == m.self:
		return m.Location.CreateAccount(ctx, a)
	default:
		if err := m.createAt(ctx, id, a); err != nil {
			return wire.Account{}, err
		}
		return m.Account(ctx, a.Name)
	}
}

// createAnswer is how the creation of an account ended.
type createAnswer struct {
	// Status, Code and Message are the protocol's error. Code is empty after a success.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Admin: it is an error of the admin API (wire.Error), not of the storage protocol.
	Admin bool `json:"admin,omitempty"`
}

// answerOf is how an error goes to the process that asked. One that neither the protocol nor the admin API has a code for is
// returned: it goes as text.
func answerOf(err error) (createAnswer, error) {
	var said *wire.Error
	if errors.As(err, &said) {
		return createAnswer{said.Status, said.Code, said.Message, true}, nil
	}
	row, ours := storageerr.Of(err)
	if !ours {
		return createAnswer{}, err
	}
	return createAnswer{row.Status, row.Code, row.Message, false}, nil
}

// err is the inverse of answerOf; nil after a success.
func (a createAnswer) err() error {
	switch {
	case a.Code == "":
		return nil
	case a.Admin:
		return &wire.Error{Status: a.Status, Code: a.Code, Message: a.Message}
	}
	return storageerr.Row{Status: a.Status, Code: a.Code, Message: a.Message}
}

// createAt has another node make an account.
func (m *members) createAt(ctx context.Context, id geo.NodeID, a wire.NewAccount) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	body, err = m.calls.CallProcess(ctx, id, methodCreate, body)
	if errors.Is(err, stampnode.ErrUnreachable) {
		return storageerr.ServerBusy
	}
	var out createAnswer
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err == nil {
		err = out.err()
	}
	return err
}

// StartNode implements operator.Location.
func (m *members) StartNode(ctx context.Context, id geo.NodeID) error {
	return m.runAt(ctx, id, operation{Start: true})
}

// StopNode implements operator.Location.
func (m *members) StopNode(ctx context.Context, id geo.NodeID) error {
	return m.runAt(ctx, id, operation{Stop: true})
}

// Start implements operator.Location.
func (m *members) Start(ctx context.Context) error {
	return m.runAtAll(ctx, operation{Start: true, Lenient: true})
}

// Stop implements operator.Location.
func (m *members) Stop(ctx context.Context) error {
	return m.runAtAll(ctx, operation{Stop: true, Lenient: true})
}

// SetLink implements operator.Location: at this location's end, in all processes that can be
// reached.
func (m *members) SetLink(ctx context.Context, l wire.Link) error {
	return m.runAtAll(ctx, operation{Link: &l})
}

// OverrideEpochs implements operator.Location: in all processes that run and can be reached. Without a witness a live process
// would take it over from another; with one none does, since the other location may have claimed an account meanwhile.
func (m *members) OverrideEpochs(ctx context.Context) (wire.Epochs, error) {
	own, err := m.Location.OverrideEpochs(ctx) // Twice here, the second time without effect.
	if err != nil {
		return own, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	return own, m.runAtAll(ctx, operation{Epochs: true})
}

// serve answers the calls of the location's other processes.
func (m *members) serve() {
	m.serveUpdate()
	m.serveSupport()
	m.calls.HandleProcess(methodView, func(ctx context.Context, _ []byte) ([]byte, error) {
		s, err := m.Location.Status(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
	m.calls.HandleProcess(methodEvents, func(ctx context.Context, _ []byte) ([]byte, error) {
		return json.Marshal(m.Location.Events(ctx).Events)
	})
	m.serveFlow()
	m.calls.HandleProcess(methodOrder, func(ctx context.Context, body []byte) ([]byte, error) {
		var o operation
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, fmt.Errorf("malformed operation: %w", err)
		}
		return nil, m.run(ctx, o)
	})
	m.calls.HandleProcess(methodCreate, func(ctx context.Context, body []byte) ([]byte, error) {
		var a wire.NewAccount
		if err := json.Unmarshal(body, &a); err != nil {
			return nil, fmt.Errorf("malformed account: %w", err)
		}
		var out createAnswer
		if _, err := m.Location.CreateAccount(ctx, a); err != nil {
			if out, err = answerOf(err); err != nil {
				return nil, err
			}
		}
		return json.Marshal(out)
	})
}
