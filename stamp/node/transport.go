package node

import (
	"context"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/fetch"
	"antipode/stamp/membership"
	"antipode/stamp/snapshot"
)

// Envelope is one message between nodes of a stamp: a report of its sender, or one of Raft's
// messages.
type Envelope struct {
	Range geo.RangeID
	// Report is nil if the envelope holds a message of Raft.
	Report membership.Message
	// Message is Raft's, nil if the envelope holds a report. It names replicas, not nodes, as its
	// sender and receiver.
	Message *pb.Message
	// From is the node that sent it. The receiver's transport sets it from the identity of the
	// connection, whatever the sender wrote.
	From geo.NodeID
}

// envelopeOverhead estimates what a message, or an entry, takes in memory beside its data.
const envelopeOverhead = 128

// Bytes estimates what an envelope holds in memory, without walking it as proto.Size
// does: it runs on the scheduler.
func (e Envelope) Bytes() int64 {
	size := int64(envelopeOverhead + len(e.Message.GetContext()) + len(e.Message.GetSnapshot().GetData()))
	for _, entry := range e.Message.GetEntries() {
		size += int64(envelopeOverhead + len(entry.GetData()))
	}
	return size
}

// Transport carries messages between the nodes of one stamp. It may lose, double
// and reorder them. It sets Envelope.From of all that it delivers. Send does not block.
type Transport interface {
	Send(from, to geo.NodeID, batch []Envelope)
	// Attach connects a node; nil disconnects it.
	Attach(id geo.NodeID, m Member)
	// Peer returns the chunk store of a node, nil while it is not reachable.
	Peer(from, to geo.NodeID) ChunkPeer
}

// Member is a node as its transport sees it.
type Member interface {
	// Receive takes messages of peers. It does not block, and may be called
	// concurrently.
	Receive(batch []Envelope)
	ChunkPeer
}

// SnapshotTransport is a Transport that carries range snapshots too. Over any other one nodes send no
// snapshots and keep their logs for the slowest peer.
type SnapshotTransport interface {
	Transport
	// Snapshot opens a stream of fragments from a node to another. An error means that the other
	// node is not reachable or takes no snapshot now.
	Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error)
}

// SnapshotMember is a Member that takes range snapshots.
type SnapshotMember interface {
	Member
	// TakeSnapshot begins to receive a snapshot. One goroutine uses the stream and closes it.
	TakeSnapshot(from geo.NodeID, h snapshot.Header) (snapshot.Stream, error)
}

// ChunkPeer is the chunk store of a peer. Its methods may be called concurrently. Errors are those of
// extent.Store and of the transport.
type ChunkPeer interface {
	// PutChunk appends a chunk, which is durable after the next SyncChunks. Data that does not match
	// ref is refused; kv.ErrBusy means that there is no room. data is not retained. If ctx ends
	// first, it is unknown whether the chunk was put.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	// SyncChunks makes durable what was put before.
	SyncChunks(ctx context.Context) error
	// ReadChunk fills p from offset off, as io.ReaderAt does.
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// CallBytesMax bounds a request, and an answer, of a call: as much as an entry of a log.
const CallBytesMax = 16 << 20

// ErrUnreachable is fetch.ErrUnreachable.
var ErrUnreachable = fetch.ErrUnreachable

// CallHandler answers a method. It owns body. kv.ErrBusy, kv.ErrUnknown and
// ranges.ErrNotLeader keep their identity on the way to the caller; another error arrives
// as its text.
type CallHandler = func(ctx context.Context, body []byte) ([]byte, error)

// CallTransport is a Transport that carries calls: a request and its answer, of up to
// CallBytesMax each.
type CallTransport interface {
	Transport
	// Call sends a request to a node and waits for its answer, within ctx. Errors: ErrUnreachable,
	// the node cannot have received it; the handler's error; one that wraps kv.ErrUnknown, the node
	// may have received it and no answer came.
	Call(ctx context.Context, from, to geo.NodeID, method string, body []byte) ([]byte, error)
	// Handle sets the handler of a method at a node; it is called while the node is attached. nil
	// removes it.
	Handle(id geo.NodeID, method string, f CallHandler)
}
