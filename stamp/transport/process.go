package transport

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/transport/wire"
)

// HandleProcess sets what answers a method for the other processes of the stamp, whether
// this one's node is attached or stopped; nil takes it away.
func (t *Transport) HandleProcess(method string, f node.CallHandler) {
	t.calls.set(method, f)
	t.stoppedCalls.set(method, f)
}

// CallProcess asks the process of another node of the stamp, whether its node is attached
// there or stopped. Errors: as those of Call.
func (t *Transport) CallProcess(ctx context.Context, to geo.NodeID, method string, body []byte) ([]byte, error) {
	p := t.peers[to]
	if p == nil {
		return nil, fmt.Errorf("node %d: %s: %w", to, method, node.ErrUnreachable)
	}
	answer, err := t.ask(ctx, wire.NewStampClient(p.calls).Call, method, body)
	if err != nil {
		return nil, fmt.Errorf("process of node %d: %s: %w", to, method, err)
	}
	return answer, nil
}
