package transporttest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
)

// Member is a node as far as a transport sees it: it keeps what it receives, and its
// chunks are in a real store.
type Member struct {
	Store *extent.Store

	mu  sync.Mutex
	got []node.Envelope
}

// NewMember returns a member whose store is in memory and closed with the test.
func NewMember(t testing.TB) *Member {
	t.Helper()
	store, err := extent.Open(vfs.NewMem(), "extents", extent.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &Member{Store: store}
}

// Receive implements node.Member.
func (m *Member) Receive(batch []node.Envelope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, batch...)
}

// Received returns what was received so far, in order.
func (m *Member) Received() []node.Envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// PutChunk implements node.ChunkPeer.
func (m *Member) PutChunk(ref extent.Ref, data []byte) error { return m.Store.Put(ref, data) }

// SyncChunks implements node.ChunkPeer.
func (m *Member) SyncChunks() error { return m.Store.Sync(context.Background()) }

// ReadChunk implements node.ChunkPeer.
func (m *Member) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return m.Store.Read(ref, off, p)
}

// Message is an append of one entry with the given data, numbered by index.
func Message(from, to geo.NodeID, index uint64, data []byte) node.Envelope {
	typ, term, f, d := pb.MsgApp, uint64(3), uint64(from), uint64(to)
	entry := &pb.Entry{Term: &term, Index: &index, Data: data}
	return node.Envelope{
		Range:   geo.FirstRange(geo.Table),
		Message: &pb.Message{Type: &typ, From: &f, To: &d, Term: &term, Index: &index, Entries: []*pb.Entry{entry}},
	}
}
