// Package memtransport is the transport between nodes of one process.
package memtransport

import (
	"context"
	"fmt"
	"sync"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// Transport is the node.Transport between nodes of one process.
type Transport struct {
	mu    sync.RWMutex
	nodes map[geo.NodeID]node.Member
	// handlers by node and method: see Handle.
	handlers map[geo.NodeID]map[string]node.CallHandler
}

// New returns an empty transport.
func New() *Transport {
	return &Transport{nodes: map[geo.NodeID]node.Member{}, handlers: map[geo.NodeID]map[string]node.CallHandler{}}
}

// Attach implements node.Transport.
func (t *Transport) Attach(id geo.NodeID, m node.Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m == nil {
		delete(t.nodes, id)
		return
	}
	t.nodes[id] = m
}

// Send implements node.Transport.
func (t *Transport) Send(from, to geo.NodeID, batch []node.Envelope) {
	t.mu.RLock()
	m := t.nodes[to]
	t.mu.RUnlock()
	if m == nil {
		return
	}
	for i := range batch {
		batch[i].From = from
	}
	m.Receive(batch)
}

// Snapshot implements node.SnapshotTransport: fragments go straight to the receiver, one in
// flight.
func (t *Transport) Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	t.mu.RLock()
	m, takes := t.nodes[to].(node.SnapshotMember)
	t.mu.RUnlock()
	if !takes {
		return nil, node.ErrUnreachable
	}
	return m.TakeSnapshot(from, h)
}

// Peer implements node.Transport.
func (t *Transport) Peer(_, to geo.NodeID) node.ChunkPeer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if m := t.nodes[to]; m != nil {
		return m
	}
	return nil
}

// checkCall refuses what is too long to travel.
func checkCall(what string, body []byte) error {
	if len(body) > node.CallBytesMax {
		return fmt.Errorf("%s has %d bytes, at most %d can travel", what, len(body), node.CallBytesMax)
	}
	return nil
}

// Handle implements node.CallTransport.
func (t *Transport) Handle(id geo.NodeID, method string, f node.CallHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f == nil {
		delete(t.handlers[id], method)
		return
	}
	if t.handlers[id] == nil {
		t.handlers[id] = map[string]node.CallHandler{}
	}
	t.handlers[id][method] = f
}

// Call implements node.CallTransport: the handler runs on the caller's goroutine.
func (t *Transport) Call(ctx context.Context, _, to geo.NodeID, method string, body []byte) ([]byte, error) {
	if err := checkCall("request of "+method, body); err != nil {
		return nil, err
	}
	t.mu.RLock()
	f := t.handlers[to][method]
	if t.nodes[to] == nil {
		f = nil
	}
	t.mu.RUnlock()
	if f == nil || ctx.Err() != nil {
		return nil, fmt.Errorf("node %d: %s: %w", to, method, node.ErrUnreachable)
	}
	answer, err := f(ctx, body)
	if err != nil {
		return nil, err
	}
	return answer, checkCall("answer of "+method, answer)
}
