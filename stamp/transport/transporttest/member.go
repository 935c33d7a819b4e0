package transporttest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// Member is a node as far as a transport sees it: it keeps what it receives, and its
// chunks are in a real store.
type Member struct {
	Store *extent.Store
	// Of range snapshots: Refuse answers the header, FailFragment a fragment, FailFinish
	// the end; each fragment waits for a Write, unless it is nil. Set before they are used.
	Refuse, FailFinish error
	FailFragment       func(snapshot.Fragment) error
	Write              chan struct{}
	// After is the key up to which it has rows of any source; it goes on in Finish until Installs is closed, unless that
	// is nil.
	After    []byte
	Installs chan struct{}

	mu        sync.Mutex
	got       []node.Envelope
	snapshots []*Snapshot
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
func (m *Member) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	return m.Store.Put(ref, data)
}

// SyncChunks implements node.ChunkPeer.
func (m *Member) SyncChunks(ctx context.Context) error { return m.Store.Sync(ctx) }

// ReadChunk implements node.ChunkPeer.
func (m *Member) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return m.Store.Read(ref, off, p)
}

// Message is an append of one entry with the given data, numbered by index.
func Message(from, to geo.NodeID, index uint64, data []byte) node.Envelope {
	typ, term, f, d := pb.MsgApp, uint64(3), uint64(from), uint64(to)
	entry := &pb.Entry{Term: &term, Index: &index, Data: data}
	return node.Envelope{
		Range:   4,
		Message: &pb.Message{Type: &typ, From: &f, To: &d, Term: &term, Index: &index, Entries: []*pb.Entry{entry}},
	}
}

// TakeSnapshot implements node.SnapshotMember.
func (m *Member) TakeSnapshot(from geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Refuse != nil {
		return nil, m.Refuse
	}
	s := &Snapshot{From: from, Header: h, m: m}
	m.snapshots = append(m.snapshots, s)
	return s, nil
}

// Snapshots returns what is known of the range snapshots that came, in order.
func (m *Member) Snapshots() []Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Snapshot
	for _, s := range m.snapshots {
		out = append(out, *s)
	}
	return out
}

// Snapshot is a range snapshot as a Member received it.
type Snapshot struct {
	From             geo.NodeID
	Header           snapshot.Header
	Fragments        []snapshot.Fragment
	Finished, Closed bool

	m *Member
}

// Send implements snapshot.Stream.
func (s *Snapshot) Send(ctx context.Context, p snapshot.Fragment) error {
	s.m.mu.Lock()
	write, fail := s.m.Write, s.m.FailFragment
	s.m.mu.Unlock()
	if write != nil {
		select {
		case <-write:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil && fail(p) != nil {
		return fail(p)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.Fragments = append(s.Fragments, p)
	return nil
}

// Resume implements snapshot.Stream.
func (s *Snapshot) Resume() (after []byte, keeps bool) { return s.m.After, s.Header.Source != 0 }

// Finish implements snapshot.Stream.
func (s *Snapshot) Finish(ctx context.Context, progressed func()) error {
	for waits := s.m.Installs != nil; waits; {
		progressed()
		select {
		case <-s.m.Installs:
			waits = false
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.Finished = true
	return s.m.FailFinish
}

// Close implements snapshot.Stream.
func (s *Snapshot) Close() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.Closed = true
}
