package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
)

// eager makes upkeep go round all the time.
func eager(o *Options) {
	o.ScrubPeriod = 20 * time.Millisecond
	o.RestartAfter = 10 * time.Millisecond
	o.Engine.Logger = o.Logger // Pebble says loudly what these tests do to it.
}

// putChunks puts chunks and rows that name them.
func (s *snapStamp) putChunks(from, to int) []extent.Ref {
	s.t.Helper()
	var refs []extent.Ref
	for i := from; i < to; i++ {
		data := []byte(strings.Repeat(fmt.Sprintf("payload %d ", i), 500))
		ref := extent.NewRef(extent.ChunkID{byte(i), byte(i >> 8), 1}, data)
		require.Eventually(s.t, func() bool { return s.PutChunk(context.Background(), ref, data) == nil }, electionWait, time.Millisecond)
		s.submit(putChunk{i, ref})
		refs = append(refs, ref)
	}
	return refs
}

// intact reports whether a node holds all chunks, by reading them.
func intact(n *Node, refs []extent.Ref) bool {
	for _, ref := range refs {
		p := make([]byte, ref.Length)
		if _, err := n.ReadChunk(ref, 0, p); err != nil || extent.NewRef(ref.ID, p) != ref {
			return false
		}
	}
	return true
}

// files lists the files of a store of a node that begin or end as named.
func (s *snapStamp) files(id geo.NodeID, store, suffix string) (paths []string) {
	s.t.Helper()
	fs := s.fss[id]
	dir := "data/" + Name("north", id) + "/" + store
	names, err := fs.List(dir)
	require.NoError(s.t, err)
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			paths = append(paths, fs.PathJoin(dir, name))
		}
	}
	return paths
}

// flip turns one bit of a file, as a medium does that nobody told.
func (s *snapStamp) flip(id geo.NodeID, path string, at func(bytes int) int, rng *rand.Rand) {
	s.t.Helper()
	b, err := s.fss[id].(*vfs.MemFS).UnsafeGetFileDataBuffer(path)
	require.NoError(s.t, err)
	b[at(len(b))] ^= 1 << rng.IntN(8)
}

// Invariant 5: bits flipped in the extents of one replica are found by the scrub and
// repaired from a peer, while the stamp serves every chunk whole.
func TestScrubRepairsChunks(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var seen events
			s := newSnapStamp(t, NewMemory(), func(o *Options) {
				eager(o)
				o.OnEvent = seen.takeAll
			})
			refs := s.putChunks(0, 30)
			id := s.follower()
			n := s.Node(id)
			bytes := int(n.Extents().Stats().FileBytes)
			for range 12 {
				path := s.files(id, "extents", ".ext")[0]
				s.flip(id, path, func(int) int { return rng.IntN(bytes) }, rng)
			}
			buf := make([]byte, 64<<10)
			for _, ref := range refs {
				k, err := s.ReadChunk(ref, 0, buf[:ref.Length])
				require.NoError(t, err)
				require.Equal(t, ref, extent.NewRef(ref.ID, buf[:k]))
			}
			rounds := n.upkeep.counts.scrubRounds.Load()
			require.Eventually(t, func() bool {
				return n.upkeep.counts.scrubRounds.Load() > rounds+2 && n.Extents().Stats().Damaged == 0 && seen.has(ChunksRepaired, 0)
			}, electionWait, time.Millisecond)
			require.Same(t, n, s.Node(id), "damaged chunks cost no restart: %v", seen.list)
			require.True(t, intact(n, refs), "%v", seen.list)
			require.NotZero(t, n.upkeep.counts.repaired.Load())
		})
	}
}

// liar is a transport whose peers give other bytes than they hold, while told so.
type liar struct {
	*Memory
	lie  atomic.Bool
	lied atomic.Int64
}

func (l *liar) Peer(from, to geo.NodeID) ChunkPeer {
	if p := l.Memory.Peer(from, to); p != nil {
		return lyingPeer{p, l}
	}
	return nil
}

type lyingPeer struct {
	ChunkPeer
	l *liar
}

func (p lyingPeer) ReadChunk(ref extent.Ref, off int64, b []byte) (int, error) {
	n, err := p.ChunkPeer.ReadChunk(ref, off, b)
	if p.l.lie.Load() && n > 0 {
		p.l.lied.Add(1)
		b[n/2] ^= 1
	}
	return n, err
}

// Invariant 5: a copy that a peer gives is taken only if it is what the reference says.
// From peers whose copies are damaged nothing is taken, and the read of the damaged chunk
// goes on to fail; from an intact one it is.
func TestRepairRefusesCorruptPeer(t *testing.T) {
	transport := &liar{Memory: NewMemory()}
	s := newSnapStamp(t, transport, eager)
	refs := s.putChunks(0, 5)
	n := s.Node(s.follower())
	transport.lie.Store(true)
	path := s.files(n.ID(), "extents", ".ext")[0]
	b, err := s.fss[n.ID()].(*vfs.MemFS).UnsafeGetFileDataBuffer(path)
	require.NoError(t, err)
	at := strings.Index(string(b), "payload 2 payload 2")
	require.Positive(t, at)
	b[at+9] ^= 4
	require.Eventually(t, func() bool { return transport.lied.Load() > 4 }, electionWait, time.Millisecond)
	_, err = n.ReadChunk(refs[2], 0, make([]byte, refs[2].Length))
	require.ErrorIs(t, err, extent.ErrCorrupt)
	require.Zero(t, n.upkeep.counts.repaired.Load())
	transport.lie.Store(false)
	require.Eventually(t, func() bool { return intact(n, refs) }, electionWait, time.Millisecond)
}

// A chunk that is gone from a node without a trace, since its extent is, is missed by the
// walk over the names and copied from a peer.
func TestMissingChunksAreCopied(t *testing.T) {
	s := newSnapStamp(t, NewMemory(), func(o *Options) {
		eager(o)
		o.CollectGrace = 30 * time.Millisecond
	})
	refs := s.putChunks(0, 20)
	id := s.follower()
	require.NoError(t, s.Stop(id, true))
	for _, path := range s.files(id, "extents", ".ext") {
		require.NoError(t, s.fss[id].Remove(path))
	}
	s.start(id)
	require.Eventually(t, func() bool { return intact(s.Node(id), refs) }, electionWait, time.Millisecond)
}

// Invariant 5: a bit flipped in a table of one replica, in any block of it, is found by
// the scrub, and the replica is rebuilt by itself. Nobody reads a wrong row meanwhile.
func TestScrubFindsDamagedTable(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			testDamagedStore(t, "state", func(s *snapStamp, id geo.NodeID) {
				tables := s.files(id, "state", ".sst")
				require.NotEmpty(t, tables)
				for _, path := range tables { // One of them may be compacted away unread.
					s.flip(id, path, func(bytes int) int { return rng.IntN(bytes) }, rng)
				}
			})
		})
	}
}

// Invariant 5, R4: the same of the log: a bit flipped in what was synced.
func TestScrubFindsDamagedLog(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			testDamagedStore(t, "log", func(s *snapStamp, id geo.NodeID) {
				files, err := s.Node(id).upkeep.scrub.stores[1].files.Files()
				require.NoError(t, err)
				require.NotEmpty(t, files)
				for _, f := range files { // In each the header, or the frame behind it.
					s.flip(id, f.Path, func(int) int { return 4096*rng.IntN(2) + rng.IntN(16) }, rng)
				}
			})
		})
	}
}

func testDamagedStore(t *testing.T, store string, damage func(s *snapStamp, id geo.NodeID)) {
	var seen events
	s := newSnapStamp(t, NewMemory(), func(o *Options) {
		eager(o)
		o.OnEvent = seen.takeAll
	})
	s.write(0, 60, "a")
	refs := s.putChunks(100, 110)
	s.dropLog(5)
	id := s.follower()
	require.NoError(t, s.Node(id).Flush())
	damage(s, id)
	require.Eventually(t, func() bool { return seen.has(StoreDamaged, 0) }, electionWait, time.Millisecond)
	require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, 3*electionWait, time.Millisecond)
	s.write(200, 230, "b")
	s.same()
	require.NotEqual(t, uint64(id), s.replicaOf(id), "it spoke on under the id of the replica that was lost")
	require.True(t, intact(s.Node(id), refs))
	aside, err := s.fss[id].List("data/" + Name("north", id))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(aside, func(name string) bool { return strings.HasPrefix(name, store+".damaged-") }))
}

// A damaged store stays in service while another replica is away: setting it aside would
// cost the range its quorum. It goes when the others are whole again.
func TestDamagedStoreWaitsForOthers(t *testing.T) {
	var seen events
	s := newSnapStamp(t, NewMemory(), func(o *Options) {
		eager(o)
		o.OnEvent = seen.takeAll
	})
	s.write(0, 60, "a")
	s.dropLog(5)
	id := s.follower()
	other := 6 - id - s.leader()
	require.NoError(t, s.Stop(other, false))
	n := s.Node(id)
	require.Eventually(t, func() bool {
		s.write(60, 61, "b")
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ticks > n.heardAt[other]+2*retellTicks
	}, electionWait, 10*time.Millisecond)
	n.condemn("state", errors.New("a test says so"))
	at := s.Leader(testRange).Machine.AppliedState().Index
	s.write(61, 80, "c")
	require.Greater(t, s.Leader(testRange).Machine.AppliedState().Index, at)
	require.Same(t, n, s.Node(id))
	require.NoError(t, n.Failed())
	s.start(other)
	require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, 3*electionWait, time.Millisecond)
	s.same()
}
