package node

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
)

// CallBytesMax bounds a request, and an answer, of a call: as much as an entry of a log.
const CallBytesMax = 16 << 20

// ErrUnreachable: a node is not reachable, or takes no such call now. Nothing happened
// there.
var ErrUnreachable = errors.New("node: not reachable")

// CallHandler answers a method. The request is its own. kv.ErrBusy, kv.ErrUnknown and
// ranges.ErrNotLeader keep their identity on the way to the caller; another error arrives
// as its text.
type CallHandler = func(ctx context.Context, body []byte) ([]byte, error)

// CallTransport is a Transport that carries calls: a request and its answer, of up to
// CallBytesMax each.
type CallTransport interface {
	Transport
	// Call asks a node and waits for its answer, within ctx. Errors: ErrUnreachable, the
	// node cannot have got it; the handler's own; one that wraps kv.ErrUnknown where the
	// node may have got it and no answer came.
	Call(ctx context.Context, from, to geo.NodeID, method string, body []byte) ([]byte, error)
	// Handle sets what answers a method at a node, from when it is attached; nil takes it
	// away.
	Handle(id geo.NodeID, method string, f CallHandler)
}

// checkCall refuses what is too long to travel.
func checkCall(what string, body []byte) error {
	if len(body) > CallBytesMax {
		return fmt.Errorf("%s has %d bytes, at most %d can travel", what, len(body), CallBytesMax)
	}
	return nil
}

// Handle implements CallTransport.
func (t *Memory) Handle(id geo.NodeID, method string, f CallHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f == nil {
		delete(t.handlers[id], method)
		return
	}
	if t.handlers[id] == nil {
		t.handlers[id] = map[string]CallHandler{}
	}
	t.handlers[id][method] = f
}

// Call implements CallTransport: the handler runs on the caller's goroutine.
func (t *Memory) Call(ctx context.Context, _, to geo.NodeID, method string, body []byte) ([]byte, error) {
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
		return nil, fmt.Errorf("node %d: %s: %w", to, method, ErrUnreachable)
	}
	answer, err := f(ctx, body)
	if err != nil {
		return nil, err
	}
	return answer, checkCall("answer of "+method, answer)
}
