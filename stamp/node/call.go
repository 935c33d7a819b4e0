package node

import (
	"context"
	"errors"

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
