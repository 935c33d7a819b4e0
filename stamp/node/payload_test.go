package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/state"
)

// stalled is a transport of which some nodes take chunks for ever.
type stalled struct {
	*memtransport.Transport
	nodes [4]atomic.Bool
}

func (s *stalled) Peer(from, to geo.NodeID) ChunkPeer {
	if s.nodes[to].Load() {
		return stalledPeer{}
	}
	return s.Transport.Peer(from, to)
}

type stalledPeer struct{}

func (stalledPeer) PutChunk(ctx context.Context, _ extent.Ref, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}
func (stalledPeer) SyncChunks(ctx context.Context) error { return ctx.Err() }
func (stalledPeer) ReadChunk(extent.Ref, int64, []byte) (int, error) {
	return 0, ErrUnreachable
}

// startApart starts three nodes, each in a process of its own on a file system in memory.
func startApart(t *testing.T, net Transport) (map[geo.NodeID]*stamp.Stamp, map[geo.NodeID]*vfs.MemFS) {
	by, fs := map[geo.NodeID]*stamp.Stamp{}, map[geo.NodeID]*vfs.MemFS{}
	for id := geo.NodeID(1); id <= 3; id++ {
		fs[id] = vfs.NewMem()
		by[id] = stamp.New(Options{
			Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: new(clock.Runtime), Transport: net,
			State: state.Options{FS: fs[id]}, Tick: 10 * time.Millisecond, InSyncTimeout: 50 * time.Millisecond,
			Seed: uint64(id), Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, by[id].Start(id))
		t.Cleanup(func() { require.NoError(t, by[id].Close()) })
	}
	return by, fs
}

// Invariant 5: a chunk whose copies are damaged at all nodes is taken again by each of them once it was
// examined, also by those of other processes. Before, the nodes do not know, and answer that they hold it.
func TestExaminedChunkIsTakenAgain(t *testing.T) {
	by, fs := startApart(t, memtransport.New())
	data := bytes.Repeat([]byte("payload "), 1000)
	ref := extent.NewRef(extent.ChunkID{1}, data)
	require.NoError(t, by[1].PutChunk(t.Context(), ref, data))
	for id := range by {
		extents := by[id].Node(id).Extents()
		file := extents.Files()[0]
		b, err := fs[id].UnsafeGetFileDataBuffer(file.Path)
		require.NoError(t, err)
		b[bytes.Index(b, data)+len(data)/2] ^= 1
		require.True(t, extents.Durable(ref.ID))
	}
	by[1].ExamineChunk(ref)
	for id := range by {
		require.False(t, by[id].Node(id).Extents().Durable(ref.ID), "node %d", id)
	}
	require.NoError(t, by[2].PutChunk(t.Context(), ref, data))
	for id := range by {
		got := make([]byte, len(data))
		_, err := by[id].Node(id).Extents().Read(ref, 0, got)
		require.NoError(t, err, "node %d", id)
		require.Equal(t, data, got)
	}
}

// R3: a chunk that is put at a process with one node is durable on every reachable node, two at least,
// and can be read from any node that has it. A stalled node does not fail the put. Without a second copy
// the put is refused, or ends with its context.
func TestPutChunkAcrossProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := &stalled{Transport: memtransport.New()}
		by, _ := startApart(t, net)
		ref := func(i byte) (extent.Ref, []byte) {
			data := []byte{i, 1, 2, 3}
			return extent.NewRef(extent.ChunkID{i}, data), data
		}
		durable := func(at geo.NodeID, ref extent.Ref) bool { return by[at].Node(at).Extents().Durable(ref.ID) }

		all, data := ref(1)
		require.NoError(t, by[1].PutChunk(t.Context(), all, data))
		for id := range by {
			require.True(t, durable(id, all), "node %d", id)
		}
		require.Eventually(t, func() bool { return by[1].HasChunk(all) && by[2].HasChunk(all) && by[3].HasChunk(all) }, electionWait, time.Millisecond)
		never, _ := ref(2)
		require.False(t, by[1].HasChunk(never) || by[2].HasChunk(never) || by[3].HasChunk(never))

		net.nodes[3].Store(true)
		two, data := ref(3)
		require.NoError(t, by[1].PutChunk(t.Context(), two, data))
		require.True(t, durable(1, two) && durable(2, two) && !durable(3, two))
		got := make([]byte, len(data))
		_, err := by[3].ReadChunk(two, 0, got)
		require.NoError(t, err)
		require.Equal(t, data, got, "from a node elsewhere")

		net.nodes[2].Store(true)
		one, data := ref(4)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, by[1].PutChunk(ctx, one, data), context.DeadlineExceeded, "one copy")
		net.nodes[2].Store(false)
		net.nodes[3].Store(false)
		require.NoError(t, by[2].Stop(2, false))
		require.NoError(t, by[3].Stop(3, false))
		require.ErrorIs(t, by[1].PutChunk(t.Context(), one, data), kv.ErrBusy, "nobody else is there")
	})
}
