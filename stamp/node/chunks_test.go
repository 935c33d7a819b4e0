package node

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/engine"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// lone is the transport of a node whose peers are written down: which of them can be
// asked for a chunk, and what was sent to them.
type lone struct {
	n     *Node
	peers map[geo.NodeID]ChunkPeer
	sent  []Envelope
}

// Send keeps what was sent; peers say that they are empty too.
func (t *lone) Send(_, to geo.NodeID, batch []Envelope) {
	t.sent = append(t.sent, batch...)
	for _, e := range batch {
		if e.Message.GetType() == msgHello {
			typ, from, nonce := msgHelloResp, uint64(to), uint64(100+to)
			t.n.Receive([]Envelope{{Range: e.Range, Message: &pb.Message{Type: &typ, From: &from, Index: e.Message.Index, LogTerm: &nonce}}})
		}
	}
}
func (t *lone) Attach(_ geo.NodeID, m Member)   { t.n, _ = m.(*Node) }
func (t *lone) Peer(_, to geo.NodeID) ChunkPeer { return t.peers[to] }
func (t *lone) took(term, index uint64) (accepted bool) {
	for _, e := range t.sent {
		m := e.Message
		accepted = accepted || m.GetType() == pb.MsgAppResp && !m.GetReject() && m.GetTerm() == term && m.GetIndex() == index
	}
	return accepted
}

// oneChunk is a peer that holds one chunk.
type oneChunk []byte

func (oneChunk) PutChunk(extent.Ref, []byte) error { return errors.New("not asked for") }
func (oneChunk) SyncChunks() error                 { return errors.New("not asked for") }
func (c oneChunk) ReadChunk(_ extent.Ref, off int64, p []byte) (int, error) {
	return copy(p, c[off:]), nil
}

// R3: an entry waits at a follower for its payload, and with it all that its leader
// sends later. When that leader is gone the entries of the next one do not wait for
// it: else one lost node and one missing chunk take the range out of service.
func TestHeldEntriesOfALeaderThatIsGone(t *testing.T) {
	data := []byte("payload")
	ref := extent.NewRef(extent.ChunkID{1}, data)
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{3: oneChunk(data)}}
	manual := clock.NewManual(time.Unix(1_700_000_000, 0))
	n, err := Open(Options{
		Location: "here", ID: 1, Peers: []geo.NodeID{1, 2, 3}, Dir: "n", Engine: engine.Options{FS: vfs.NewMem()},
		Clock: manual, Transport: transport,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close(false)) }()

	for n.identities[geo.FirstRange(geo.Blob)].phase != member {
		manual.Advance(time.Second)
		_, err := n.Pass()
		require.NoError(t, err)
	}
	appendFrom := func(from, term uint64) {
		typ, to, index := pb.MsgApp, uint64(1), uint64(1)
		n.Receive([]Envelope{{Range: geo.FirstRange(geo.Blob), Message: &pb.Message{
			Type: &typ, From: &from, To: &to, Term: &term,
			Entries: []*pb.Entry{{Term: &term, Index: &index, Data: groupNaming(t, term, ref)}},
		}}})
		for busy := true; busy; {
			var err error
			busy, err = n.Pass()
			require.NoError(t, err)
		}
	}
	appendFrom(2, 2)
	require.False(t, transport.took(2, 1), "without its payload")
	appendFrom(3, 3)
	require.True(t, n.Extents().Durable(ref.ID), "fetched from the new leader")
	require.True(t, transport.took(3, 1), "the new leader's entry")
}

// groupNaming is an entry whose one change names a chunk.
func groupNaming(t *testing.T, term uint64, ref extent.Ref) []byte {
	t.Helper()
	p := keys.Partition{Service: geo.Blob, Account: "acct", Container: "c", Object: "b"}
	var b change.Builder
	_, err := b.Record(&change.Record{
		Range: geo.FirstRange(geo.Blob), Service: p.Service, Account: p.Account, Lane: p.Lane(), CommitTime: 2,
		Epoch: geo.Epoch{Number: 1, Location: "here"}, Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r")}}, Chunks: []extent.Ref{ref},
	})
	require.NoError(t, err)
	return b.Finish(change.GroupID{Term: term, Number: 1}, change.GroupID{})
}
