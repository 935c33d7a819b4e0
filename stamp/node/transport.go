package node

import (
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
)

// Envelope is one Raft message between nodes of a stamp.
type Envelope struct {
	Range   geo.RangeID
	Message *pb.Message
}

// Transport carries messages between the nodes of one stamp. It may lose, double
// and reorder them. Send does not block.
type Transport interface {
	Send(from, to geo.NodeID, batch []Envelope)
	// Attach connects a node; nil disconnects it.
	Attach(id geo.NodeID, n *Node)
	// Peer gives the chunk store of a node, nil while it is not reachable.
	Peer(from, to geo.NodeID) ChunkPeer
}

// ChunkPeer is where a node puts and gets payload chunks of a peer.
type ChunkPeer interface {
	PutChunk(ref extent.Ref, data []byte) error
	SyncChunks() error
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// Memory is the Transport between nodes of one process.
type Memory struct {
	mu    sync.RWMutex
	nodes map[geo.NodeID]*Node
}

// NewMemory returns an empty transport.
func NewMemory() *Memory { return &Memory{nodes: map[geo.NodeID]*Node{}} }

// Attach implements Transport.
func (t *Memory) Attach(id geo.NodeID, n *Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == nil {
		delete(t.nodes, id)
		return
	}
	t.nodes[id] = n
}

// Send implements Transport.
func (t *Memory) Send(_, to geo.NodeID, batch []Envelope) {
	t.mu.RLock()
	n := t.nodes[to]
	t.mu.RUnlock()
	if n != nil {
		n.Receive(batch)
	}
}

// Peer implements Transport.
func (t *Memory) Peer(_, to geo.NodeID) ChunkPeer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n := t.nodes[to]; n != nil {
		return n
	}
	return nil
}
