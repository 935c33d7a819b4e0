package node_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/membership"
	. "antipode/stamp/node"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// lone is the transport of a single node: peers are those that it can fetch chunks from, and sent has
// what the node sent.
type lone struct {
	n     *Node
	peers map[geo.NodeID]ChunkPeer
	sent  []Envelope
}

// Send keeps what was sent. All peers answer that they are empty too.
func (t *lone) Send(_, to geo.NodeID, batch []Envelope) {
	t.sent = append(t.sent, batch...)
	for _, e := range batch {
		if hello, ok := e.Report.(membership.Hello); ok {
			t.n.Receive([]Envelope{{Range: e.Range, From: to, Report: membership.HelloAnswer{Asked: hello.Nonce, Nonce: membership.Nonce(100 + to)}}})
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

func (oneChunk) PutChunk(context.Context, extent.Ref, []byte) error {
	return errors.New("not asked for")
}
func (oneChunk) SyncChunks(context.Context) error { return errors.New("not asked for") }
func (c oneChunk) ReadChunk(_ extent.Ref, off int64, p []byte) (int, error) {
	return copy(p, c[off:]), nil
}

// loneNode returns node 1 of three, a member of its ranges, with the peers of transport.
func loneNode(t *testing.T, transport *lone, start func(func())) *Node {
	t.Helper()
	manual := clock.NewManual(time.Unix(1_700_000_000, 0))
	n, err := Open(Options{
		Location: "here", ID: 1, Peers: []geo.NodeID{1, 2, 3}, Dir: "n", State: state.Options{FS: vfs.NewCrashableMem()},
		Clock: manual, Transport: transport, Go: start, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(false)) })
	for n.Identity(geo.FirstRange(geo.Blob)).Phase != membership.Member {
		manual.Advance(time.Second)
		work(t, n)
	}
	return n
}

// work does passes until the node has nothing more to do.
func work(t *testing.T, n *Node) {
	t.Helper()
	for busy := true; busy; {
		var err error
		busy, err = n.Pass()
		require.NoError(t, err)
	}
}

// appendFrom gives a node the entry at index of a leader, which names a chunk.
func appendFrom(t *testing.T, n *Node, from, term, index uint64, ref extent.Ref) {
	t.Helper()
	typ, to, before, logTerm := pb.MsgApp, uint64(1), index-1, term
	if before == 0 {
		logTerm = 0
	}
	n.Receive([]Envelope{{Range: geo.FirstRange(geo.Blob), From: geo.NodeID(from), Message: &pb.Message{
		Type: &typ, From: &from, To: &to, Term: &term, Index: &before, LogTerm: &logTerm,
		Entries: []*pb.Entry{{Term: &term, Index: &index, Data: groupNaming(t, term, ref)}},
	}}})
	work(t, n)
}

// commit gives a node a heartbeat of a leader by which an entry is committed, and the node applies it.
func commit(t *testing.T, n *Node, from, term, index uint64) {
	t.Helper()
	typ, to := pb.MsgHeartbeat, uint64(1)
	n.Receive([]Envelope{{Range: geo.FirstRange(geo.Blob), From: geo.NodeID(from), Message: &pb.Message{
		Type: &typ, From: &from, To: &to, Term: &term, Commit: &index,
	}}})
	work(t, n)
	require.Equal(t, index, n.Range(geo.FirstRange(geo.Blob)).Machine.AppliedState().Index)
}

// R3: an entry waits at a follower for its payload, and with it all that its leader
// sends later. When that leader is gone the entries of the next one do not wait for
// it: else one lost node and one missing chunk take the range out of service.
func TestHeldEntriesOfALeaderThatIsGone(t *testing.T) {
	data := []byte("payload")
	ref := extent.NewRef(extent.ChunkID{1}, data)
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{}}
	n := loneNode(t, transport, func(f func()) { f() })
	appendFrom(t, n, 2, 2, 1, ref)
	require.False(t, transport.took(2, 1), "without its payload")
	transport.peers[3] = oneChunk(data)
	require.NoError(t, n.RetryFetches())
	appendFrom(t, n, 3, 3, 1, ref)
	require.True(t, n.Extents().Durable(ref.ID), "fetched from the new leader")
	require.True(t, transport.took(3, 1), "the new leader's entry")
}

// emptyPeer holds no chunk.
type emptyPeer struct{ oneChunk }

func (emptyPeer) ReadChunk(extent.Ref, int64, []byte) (int, error) { return 0, extent.ErrNotFound }

// An entry whose payload its leader has no more is not waited for: the leader has trimmed it since, and what was overwritten
// is collected. What comes behind it is refused, so that the leader sends what it has, or a range snapshot.
func TestHeldEntriesWhosePayloadIsGone(t *testing.T) {
	data, id := []byte("payload"), geo.FirstRange(geo.Blob)
	gone, ref := extent.NewRef(extent.ChunkID{1}, data), extent.NewRef(extent.ChunkID{2}, data)
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{3: emptyPeer{}}}
	n := loneNode(t, transport, func(f func()) { f() })
	appendFrom(t, n, 2, 2, 1, gone)
	require.Len(t, n.Held(id), 1, "its leader may have it, and is away")
	transport.peers[2] = emptyPeer{}
	require.NoError(t, n.RetryFetches())
	work(t, n)
	work(t, n)
	require.Empty(t, n.Held(id))
	transport.peers[2] = oneChunk(data)
	appendFrom(t, n, 2, 2, 2, ref)
	refused := func(e Envelope) bool { return e.Message.GetType() == pb.MsgAppResp && e.Message.GetReject() }
	require.True(t, slices.ContainsFunc(transport.sent, refused), "the entry before is not here")
	appendFrom(t, n, 2, 2, 1, ref)
	require.True(t, transport.took(2, 1))
}

// R9: before a round of the collection what was trimmed is gone for good: a crash would bring back names of what it drops.
func TestR9TrimsAreDurableBeforeRounds(t *testing.T) {
	data := []byte("payload")
	ref, id := extent.NewRef(extent.ChunkID{1}, data), geo.FirstRange(geo.Blob)
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{2: oneChunk(data)}}
	n := loneNode(t, transport, func(f func()) { f() })
	appendFrom(t, n, 2, 2, 1, ref)
	commit(t, n, 2, 2, 1)
	require.NoError(t, n.State().Flush())
	require.NoError(t, n.TrimUnsynced(id, 1))
	settled := make(chan error, 1)
	go func() { settled <- n.ScrubOptions().Node.Settle(t.Context()) }()
	require.Eventually(t, func() bool {
		work(t, n)
		select {
		case err := <-settled:
			return assert.NoError(t, err)
		default:
			return false
		}
	}, electionWait, time.Millisecond)
	crashed, err := seglog.Open("n/log", state.Options{FS: n.Opts().State.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}), ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, crashed.Close()) }()
	log, err := crashed.Range(id, []uint64{1, 2, 3})
	require.NoError(t, err)
	first, err := log.FirstIndex()
	require.NoError(t, err)
	require.EqualValues(t, 2, first)
}

// R9: an entry that is applied here and comes again does not wait for its payload, which may be collected since: nobody could
// return it, and all that comes later would wait for it.
func TestAppliedEntriesWaitForNoPayload(t *testing.T) {
	data := []byte("payload")
	ref := extent.NewRef(extent.ChunkID{1}, data)
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{2: oneChunk(data)}}
	n := loneNode(t, transport, func(f func()) { f() })
	appendFrom(t, n, 2, 2, 1, ref)
	commit(t, n, 2, 2, 1)

	require.NoError(t, n.Extents().Delete(ref.ID))
	delete(transport.peers, 2)
	transport.sent = nil
	appendFrom(t, n, 2, 2, 1, ref)
	require.Empty(t, n.Held(geo.FirstRange(geo.Blob)))
	require.True(t, transport.took(2, 1))
}

// gated is a peer that returns each chunk when the test sends it to the channel.
type gated map[extent.ChunkID]chan []byte

func (gated) PutChunk(context.Context, extent.Ref, []byte) error { return errors.New("not asked for") }

func (gated) SyncChunks(context.Context) error { return errors.New("not asked for") }

func (c gated) ReadChunk(ref extent.Ref, _ int64, p []byte) (int, error) {
	data := <-c[ref.ID]
	if data == nil {
		return 0, errors.New("lost on the way")
	}
	return copy(p, data), nil
}

// R3: while a peer is slow to return a chunk the node continues: it answers heartbeats and fetches other
// chunks at the same time. It takes entries in order, each when its payload is durable. It repeats a
// failed fetch.
func TestFetchDoesNotStopTheNode(t *testing.T) {
	peer := gated{}
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{2: peer}}
	n := loneNode(t, transport, nil)
	refs := make([]extent.Ref, 3)
	for i := range refs {
		refs[i] = extent.NewRef(extent.ChunkID{byte(i + 1)}, []byte{byte(i)})
		peer[refs[i].ID] = make(chan []byte)
	}
	for i, ref := range refs {
		appendFrom(t, n, 2, 2, uint64(i+1), ref)
	}
	typ, from, to, term := pb.MsgHeartbeat, uint64(2), uint64(1), uint64(2)
	transport.sent = nil
	n.Receive([]Envelope{{Range: geo.FirstRange(geo.Blob), From: 2, Message: &pb.Message{Type: &typ, From: &from, To: &to, Term: &term}}})
	work(t, n)
	require.True(t, slices.ContainsFunc(transport.sent, func(e Envelope) bool { return e.Message.GetType() == pb.MsgHeartbeatResp }))

	durable := func(i int) {
		require.Eventually(t, func() bool { return n.Extents().Durable(refs[i].ID) }, electionWait, time.Millisecond)
		work(t, n)
	}
	peer[refs[2].ID] <- []byte{2}
	peer[refs[1].ID] <- []byte{1}
	durable(2)
	durable(1)
	require.False(t, transport.took(2, 3), "before the first one")
	peer[refs[0].ID] <- nil
	require.Eventually(t, func() bool {
		require.NoError(t, n.RetryFetches())
		work(t, n)
		select {
		case peer[refs[0].ID] <- []byte{0}:
			return true
		default:
			return false
		}
	}, electionWait, time.Millisecond)
	durable(0)
	require.Eventually(t, func() bool { work(t, n); return transport.took(2, 3) }, electionWait, time.Millisecond)
	require.Nil(t, n.Held(geo.FirstRange(geo.Blob)), "an empty slice would keep them in memory")
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
	return b.Finish(change.GroupID{Term: term, Number: 1}, change.GroupID{}, 0)
}
