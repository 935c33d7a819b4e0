package operator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// peerWait bounds a read from another process: a paused process never answers.
const peerWait = 2 * time.Second

// Members implements Location for a location of which this process runs one node. What it shows is what all processes of the
// location report. An operation on another node is a call to its process: see hop.
type Members struct {
	o      MembersOptions
	claims cloneClaims
}

// MembersOptions configures a Members. All are required.
type MembersOptions struct {
	// Own is the part of the location that this process runs, and Server starts and stops it.
	Own    Location
	Server Server
	Self   geo.NodeID
	// Nodes are all nodes of the location, Self included, in order.
	Nodes []geo.NodeID
	Calls Calls
	// CatalogLeader returns the node that leads the catalog, if that is known.
	CatalogLeader func() (id geo.NodeID, known bool)
	// Clones returns the clones that are open in this process.
	Clones func() []wire.Clone
}

// Calls are the calls between the processes of the location: see transport.Transport.
type Calls interface {
	CallProcess(ctx context.Context, to geo.NodeID, method string, body []byte) ([]byte, error)
	HandleProcess(method string, f stampnode.CallHandler)
}

// NewMembers returns the location of a node, and answers the calls of its other processes.
func NewMembers(o MembersOptions) *Members {
	m := &Members{o: o}
	m.serve()
	m.serveClones()
	m.serveEarlier()
	return m
}

// Name implements Location.
func (m *Members) Name() geo.Location { return m.o.Own.Name() }

// Readiness implements Location: that of this process.
func (m *Members) Readiness(ctx context.Context) wire.LocationReadiness {
	return m.o.Own.Readiness(ctx)
}

func (m *Members) do(ctx context.Context, q question) error { return q.of.located(ctx, m, q) }

// inProcess carries out an operation in this process.
func inProcess[Req, Resp any](ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (Resp, error) {
	if o.process != nil {
		return o.process(ctx, m, o, at, in)
	}
	return ask(ctx, m.o.Own, o, at, in)
}

// at has the process of a node carry out an operation.
func atProcess[Req, Resp any](ctx context.Context, m *Members, id geo.NodeID, o *operation[Req, Resp], at wire.At, in Req) (Resp, error) {
	if id == m.o.Self {
		return inProcess(ctx, m, o, at, in)
	}
	return hopTo(ctx, m, id, o, at, in)
}

// atCatalogLeader has the process of the node that leads the catalog carry out an operation.
func atCatalogLeader[Req, Resp any](ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	id, known := m.o.CatalogLeader()
	if !known {
		return out, storageerr.ServerBusy
	}
	out, err = atProcess(ctx, m, id, o, at, in)
	if id != m.o.Self && errors.Is(err, stampnode.ErrUnreachable) {
		err = storageerr.ServerBusy
	}
	return out, err
}

// atMember has the process of the node that is named carry out an operation.
func atMember[Req, Resp any](ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	_, id, err := wire.ParseNodeName(at.Node)
	if err != nil {
		return out, err
	}
	if !slices.Contains(m.o.Nodes, id) {
		return out, wire.NoNode(m.Name(), id)
	}
	return atProcess(ctx, m, id, o, at, in)
}

// atEvery has all processes of the location carry out an operation, at once. The answer is that of this process.
func atEvery[Req, Resp any](ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (own Resp, err error) {
	errs := make([]error, len(m.o.Nodes))
	var asked sync.WaitGroup
	for i, id := range m.o.Nodes {
		asked.Go(func() {
			out, err := atProcess(ctx, m, id, o, at, in)
			if id == m.o.Self {
				own = out
			}
			if !o.passesAway || !errors.Is(err, stampnode.ErrUnreachable) {
				errs[i] = err
			}
		})
	}
	asked.Wait()
	return own, errors.Join(errs...)
}

// gather has all processes of the location carry out an operation, and merges their answers.
func gather[Req, Resp any](ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (Resp, error) {
	own, err := inProcess(ctx, m, o, at, in)
	if err != nil {
		return own, err
	}
	answers := askPeers(ctx, m, func(ctx context.Context, id geo.NodeID) Resp {
		out, err := hopTo(ctx, m, id, o, at, in)
		if err != nil && o.earlier != nil {
			out, err = o.earlier(ctx, m, id, at, err)
		}
		if err != nil {
			return o.silent(wire.NodeName(m.Name(), id))
		}
		return out
	})
	return o.merge(append([]Resp{own}, answers...)), nil
}

// askPeers asks the other processes of the location, all at once, within peerWait. The answers are in the order of the nodes.
func askPeers[T any](ctx context.Context, m *Members, one func(context.Context, geo.NodeID) T) []T {
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	answers := make([]T, len(m.o.Nodes))
	var asked sync.WaitGroup
	for i, id := range m.o.Nodes {
		if id != m.o.Self {
			asked.Go(func() { answers[i] = one(ctx, id) })
		}
	}
	asked.Wait()
	if own := slices.Index(m.o.Nodes, m.o.Self); own >= 0 {
		answers = slices.Delete(answers, own, own+1)
	}
	return answers
}

// confirmEverywhere confirms epochs in all processes that run and can be reached. Without a witness a live process would take it
// over from another; with one none does, since the other location may have claimed an account meanwhile.
func confirmEverywhere(ctx context.Context, m *Members, o *operation[wire.None, wire.Epochs], at wire.At, in wire.None) (wire.Epochs, error) {
	own, err := ask(ctx, m.o.Own, o, at, in) // Twice here, the second time without effect.
	if err != nil {
		return own, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	_, err = atEvery(ctx, m, o, at, in)
	return own, err
}

// confirmHere confirms the epochs of this process. One that is stopped has nothing that could be confirmed, and once it starts
// nothing is.
func confirmHere(ctx context.Context, m *Members, o *operation[wire.None, wire.Epochs], at wire.At, in wire.None) (wire.Epochs, error) {
	if !m.o.Server.Running() {
		return wire.Epochs{}, nil
	}
	return ask(ctx, m.o.Own, o, at, in)
}
