package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// brittleFS fails the next syncs, as many as fails, of files whose path contains where.
type brittleFS struct {
	vfs.FS
	mem   *vfs.MemFS
	where string
	fails atomic.Int64
}

func newBrittleFS(mem *vfs.MemFS, where string) *brittleFS {
	b := &brittleFS{mem: mem, where: where}
	b.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && strings.Contains(op.Path, b.where) && b.fails.Add(-1) >= 0 {
			return errorfs.ErrInjected
		}
		return nil
	}))
	return b
}

// R4: after a failed fsync of any store the node takes no part until its stores were opened again, which
// happens by itself. It does not trust what it then finds in the page cache alone. So it keeps its
// replica id, and a crash right after that, which loses everything that was never synced, loses nothing
// that it acknowledged before or since.
// It holds invariant 5.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"/log/", "/state/0", "/extents/"} {
		t.Run(strings.Trim(where, "/0"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				s := newSnapStamp(t, memtransport.New(), func(o *Options) {
					eager(o)
					o.OnEvent = seen.takeAll
				})
				refs := s.putChunks(0, 10)
				s.write(20, 60, "a")
				id := s.follower()
				require.NoError(t, s.Stop(id, false))
				brittle := newBrittleFS(s.fss[id].(*vfs.MemFS), where)
				s.fss[id] = brittle
				s.start(id)
				s.same()
				was := s.replicaOf(id)

				brittle.fails.Store(1)
				for i := 100; !seen.has(StoreFailed, 0); i++ {
					require.Less(t, i, 5000, "the failed sync was not noticed")
					data := fmt.Appendf(nil, "payload %d", i)
					ref := extent.NewRef(extent.ChunkID{byte(i), byte(i >> 8), 2}, data)
					_ = s.PutChunk(context.Background(), ref, data) // Its client gets the error.
					_ = s.Submit(context.Background(), testRange, &put{p: partition(i), value: strings.Repeat("b", 500)})
					time.Sleep(time.Millisecond)
				}
				require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, electionWait, time.Millisecond)
				refs = append(refs, s.putChunks(30, 35)...)
				s.write(60, 80, "c")
				s.same()
				require.Equal(t, was, s.replicaOf(id), "it was rebuilt")

				crashed := brittle.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 2))})
				require.NoError(t, s.Stop(id, false))
				s.fss[id] = crashed
				s.start(id)
				s.same()
				require.Equal(t, was, s.replicaOf(id), "the crash took what it had acknowledged")
				require.True(t, intact(s.Node(id), refs))
			})
		})
	}
}

// A node whose disk keeps failing is taken out of service after a few restarts, and reports it. It serves
// again when it is started on a disk that works.
func TestNodeStaysOutOfService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			eager(o)
			o.RestartAfter = time.Millisecond
			o.OnEvent = seen.takeAll
		})
		s.write(0, 10, "a")
		id := s.follower()
		require.NoError(t, s.Stop(id, false))
		brittle := newBrittleFS(s.fss[id].(*vfs.MemFS), "/log/")
		s.fss[id] = brittle
		s.start(id)
		s.same()
		brittle.fails.Store(1 << 30)
		for i := 10; !seen.has(NodeOutOfService, 0); i++ {
			require.Less(t, i, 5000)
			_ = s.Submit(context.Background(), testRange, &put{p: partition(i), value: "b"})
			time.Sleep(time.Millisecond)
		}
		require.Error(t, s.Down(id))
		require.Nil(t, s.Node(id))
		s.write(0, 10, "c") // The others go on.
		brittle.fails.Store(0)
		s.start(id)
		require.NoError(t, s.Down(id))
		s.same()
	})
}

// Stopping a node that is down, or is being opened again, waits for the opening and leaves nothing open.
func TestStopWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.RestartAfter = time.Millisecond })
		rng := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			id := geo.NodeID(1 + rng.IntN(3))
			n := s.Node(id)
			n.FailWith(errors.New("a test says so"))
			time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
			require.NoError(t, s.Stop(id, false))
			require.Nil(t, s.Node(id))
			s.start(id)
		}
		s.write(0, 5, "a")
		s.same()
	})
}
