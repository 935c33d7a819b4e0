package node_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// hungCalls is a transport over which one node answers no calls.
type hungCalls struct {
	*memtransport.Transport
	node atomic.Uint64
}

func (h *hungCalls) Call(ctx context.Context, from, to geo.NodeID, method string, body []byte) ([]byte, error) {
	if geo.NodeID(h.node.Load()) == to {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Transport.Call(ctx, from, to, method, body)
}

// A chunk is not missing if it is durable on each node that answers, two at least, as after a put: asked at any of three
// processes. One that a node lacks is, and so is another chunk of its id.
func TestMissingChunksAcrossProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := &hungCalls{Transport: memtransport.New()}
		by, _ := startApart(t, net)
		ctx := t.Context()
		chunk := func(i byte) (extent.Ref, []byte) {
			data := []byte{i, 1, 2, 3}
			return extent.NewRef(extent.ChunkID{i}, data), data
		}
		all, data := chunk(1)
		require.NoError(t, by[1].PutChunk(ctx, all, data))
		only := func(i byte, nodes ...geo.NodeID) extent.Ref {
			ref, data := chunk(i)
			for _, id := range nodes {
				require.NoError(t, by[id].Node(id).PutChunk(ctx, ref, data))
				require.NoError(t, by[id].Node(id).SyncChunks(ctx))
			}
			return ref
		}
		never := only(2)
		other := extent.Ref{ID: all.ID, Length: all.Length, CRC: all.CRC + 1}
		refs := []extent.Ref{all, only(3, 1, 2), never, other, only(4, 2, 3)}
		missing := func(at geo.NodeID, want ...bool) {
			t.Helper()
			got, err := by[at].MissingChunks(ctx, refs)
			require.NoError(t, err)
			require.Equal(t, want, got, "asked at %d", at)
		}
		for id := range by {
			missing(id, false, true, true, true, true)
		}
		began := time.Now()
		net.node.Store(3)
		missing(1, false, false, true, true, true)
		require.Equal(t, time.Second, time.Since(began), "it is not waited for without an end")
		missing(3, false, true, true, true, true)
		net.node.Store(0)
		require.NoError(t, by[3].Stop(3, false))
		missing(1, false, false, true, true, true)
		require.NoError(t, by[2].Stop(2, false))
		_, err := by[1].MissingChunks(ctx, refs)
		require.ErrorIs(t, err, kv.ErrBusy, "one copy")
	})
}

// A node that runs an earlier version, or answers what is no answer about these chunks, is passed over like one that is
// away. A node refuses a question that is cut short.
func TestMissingChunksAnsweredWrongly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := memtransport.New()
		by, _ := startApart(t, net)
		data := []byte("payload")
		refs := []extent.Ref{extent.NewRef(extent.ChunkID{1}, data), {ID: extent.ChunkID{2}, Length: 1}}
		require.NoError(t, by[1].PutChunk(t.Context(), refs[0], data))
		const method = "stamp.missingChunks"
		_, err := net.Call(t.Context(), 1, 2, method, make([]byte, 25))
		require.ErrorContains(t, err, "25 bytes")
		answers := func(b ...byte) CallHandler {
			return func(context.Context, []byte) ([]byte, error) { return b, nil }
		}
		for name, f := range map[string]CallHandler{
			"earlier version": nil, "nothing": answers(), "too short": answers(1), "too long": answers(1, 1, 1), "no bit": answers(0, 2),
		} {
			net.Handle(2, method, f)
			missing, err := by[1].MissingChunks(t.Context(), refs)
			require.NoError(t, err, name)
			require.Equal(t, []bool{false, true}, missing, name)
		}
		net.Handle(3, method, answers(2, 2))
		_, err = by[1].MissingChunks(t.Context(), refs)
		require.ErrorIs(t, err, kv.ErrBusy)
	})
}

// collectOnce does a round of collection, in which nothing is named, at each of some nodes, and returns what they dropped.
func collectOnce(t *testing.T, nodes ...*Node) (dropped int) {
	t.Helper()
	for _, n := range nodes {
		n.Extents().BeginRound(true)
		n.Extents().EndRound()
		chunks, _, err := n.Extents().Sweep(10)
		require.NoError(t, err)
		dropped += chunks
	}
	return dropped
}

// R9: each node that was asked for a chunk, here or in another process, keeps it for this round of its collection and the
// next, though nothing names it.
func TestR9NodesKeepWhatTheyWereAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		by, _ := startApart(t, memtransport.New())
		nodes := []*Node{by[1].Node(1), by[2].Node(2), by[3].Node(3)}
		data := []byte("payload")
		ref := extent.NewRef(extent.ChunkID{1}, data)
		require.NoError(t, by[1].PutChunk(t.Context(), ref, data))
		for range 4 {
			missing, err := by[1].MissingChunks(t.Context(), []extent.Ref{ref})
			require.NoError(t, err)
			require.Equal(t, []bool{false}, missing)
			require.Zero(t, collectOnce(t, nodes...))
		}
		require.Equal(t, 3, collectOnce(t, nodes...), "it was not asked for in this round and the one before")
	})
}

// A node without room is passed over, as by a put: what it lacks is not sent for its sake. It keeps what it was asked for
// all the same (R9). Where fewer than two have room all is as busy as a put would be.
func TestMissingChunksWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left [4]atomic.Uint64
		s := testStamp(t, func(id geo.NodeID) vfs.FS {
			left[id].Store(1 << 40)
			return meteredFS{vfs.NewMem(), &left[id]}
		})
		fill := func(id geo.NodeID) {
			left[id].Store(ReserveBytes - 1)
			CheckRoom(s.Node(id))
		}
		first, second := []byte("on all nodes"), []byte("on two nodes")
		refs := []extent.Ref{extent.NewRef(extent.ChunkID{1}, first), extent.NewRef(extent.ChunkID{2}, second)}
		require.NoError(t, s.PutChunk(t.Context(), refs[0], first))
		fill(3)
		require.NoError(t, s.PutChunk(t.Context(), refs[1], second))
		for range 4 {
			missing, err := s.MissingChunks(t.Context(), refs)
			require.NoError(t, err)
			require.Equal(t, []bool{false, false}, missing)
			require.Zero(t, collectOnce(t, s.Node(1), s.Node(2), s.Node(3)))
		}
		fill(2)
		_, err := s.MissingChunks(t.Context(), refs)
		require.ErrorIs(t, err, kv.ErrBusy)
	})
}

// walkedStamp is a stamp with a chunk that nothing has named for two rounds, whose nodes' walks are behind the logs and not at
// the sweep. each calls f with the walk of each node.
func walkedStamp(t *testing.T) (s *snapStamp, ref extent.Ref, each func(f func(w *walk))) {
	t.Helper()
	s = newSnapStamp(t, memtransport.New(), func(o *Options) { o.FlushEntries = 1 << 30 }) // Upkeep itself begins later.
	data := []byte("put long ago")
	ref = extent.NewRef(extent.ChunkID{7}, data)
	require.NoError(t, s.PutChunk(context.Background(), ref, data))
	var walks []*walk
	for _, id := range s.Nodes() {
		walks = append(walks, newWalk(t, s.Node(id)))
	}
	each = func(f func(w *walk)) {
		for _, w := range walks {
			f(w)
		}
	}
	each((*walk).round)
	each(func(w *walk) { w.until(func() bool { return w.rows }) })
	return s, ref, each
}

// R3, R9: a chunk that nothing named for two rounds, and that a push asks for after the walk over the names and before the
// sweep, stays on every node until the record that names it is applied, a round later; and then for as long as the row
// is there. Each node's collector is stepped by hand.
func TestR9AskedChunkIsThereForItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ref, each := walkedStamp(t)
		holds := func(w *walk) { require.Equal(t, 1, held(w.n, []extent.Ref{ref}), "node %d", w.n.ID()) }
		missing, err := s.MissingChunks(context.Background(), []extent.Ref{ref})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, missing)
		each(func(w *walk) { w.until(func() bool { return w.swept }) })
		each(holds)
		each((*walk).round)
		each(holds)
		s.submit(putChunk{1, ref})
		at := s.Leader(testRange).Machine.AppliedState().Index
		each(func(w *walk) {
			require.Eventually(t, func() bool { return w.n.Range(testRange).Machine.AppliedState().Index >= at }, electionWait, time.Millisecond)
		})
		for range 3 {
			each((*walk).round)
			each(holds)
		}
	})
}
