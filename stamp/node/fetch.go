package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
)

// fetchPaced copies a chunk that this node does not hold from a peer, first before the
// others, at FetchBytesPerSecond. It is not durable before the next Sync.
func (n *Node) fetchPaced(ctx context.Context, ref extent.Ref, first geo.NodeID) error {
	if n.extents.Durable(ref.ID) {
		return nil
	}
	if err := n.copyFromAny(ref, first); err != nil {
		return err
	}
	pace := time.NewTimer(time.Duration(float64(ref.Length) / float64(n.o.FetchBytesPerSecond) * float64(time.Second)))
	defer pace.Stop()
	select {
	case <-pace.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copyFromAny puts an intact copy of a chunk here, from the first peer that has one; first,
// unless it is 0, is asked before the others. It is not durable before the next Sync.
func (n *Node) copyFromAny(ref extent.Ref, first geo.NodeID) error {
	peers := n.o.Peers
	if first != 0 {
		peers = append([]geo.NodeID{first}, peers...)
	}
	var failed error
	for i, p := range peers {
		if p == n.o.ID || p == first && i > 0 {
			continue
		}
		err := n.copyChunk(ref, p)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("chunk %s: no peer has it: %w", ref.ID, failed)
}

// copyChunk reads a chunk from a peer and puts it here, if it is what ref says.
func (n *Node) copyChunk(ref extent.Ref, from geo.NodeID) error {
	peer := n.o.Transport.Peer(n.o.ID, from)
	if peer == nil {
		return ErrUnreachable
	}
	data := make([]byte, ref.Length)
	if _, err := peer.ReadChunk(ref, 0, data); err != nil {
		return fmt.Errorf("read from node %d: %w", from, err)
	}
	return n.extents.Put(ref, data)
}
