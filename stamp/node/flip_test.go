//go:build !race

package node_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// flipRounds is how often TestFlipAnywhere flips a bit.
const flipRounds = 30

// These tests flip bits of files in memory while others read them, as a failing medium does. The race
// detector would report that, rightly.

// flip flips one bit of a file behind the file system's back, as a failing medium does.
func (s *snapStamp) flip(id geo.NodeID, path string, at func(bytes int) int, rng *rand.Rand) {
	s.t.Helper()
	b, err := s.fss[id].(*vfs.MemFS).UnsafeGetFileDataBuffer(path)
	require.NoError(s.t, err)
	if len(b) > 0 { // One that is about to be written holds nothing yet.
		b[at(len(b))] ^= 1 << rng.IntN(8)
	}
}

// Invariant 5: bits flipped in the extents of one replica are found by the scrub and
// repaired from a peer, while the stamp serves every chunk whole.
//
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestScrubRepairsChunks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				var seen events
				s := newSnapStamp(t, memtransport.New(), func(o *Options) {
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
				rounds := n.Scrubber().Stats().Cycles
				require.Eventually(t, func() bool {
					return n.Scrubber().Stats().Cycles > rounds+2 && n.Extents().Stats().Damaged == 0 && seen.has(ChunksRepaired, 0)
				}, electionWait, time.Millisecond)
				require.Same(t, n, s.Node(id), "damaged chunks cost no restart: %v", seen.list)
				require.True(t, intact(n, refs), "%v", seen.list)
				require.NotZero(t, n.Scrubber().Stats().Repaired)
			})
		})
	}
}

// corrupting is a transport whose peers return other bytes than they hold while on is set.
type corrupting struct {
	*memtransport.Transport
	on    atomic.Bool
	reads atomic.Int64 // corrupted ones
}

func (c *corrupting) Peer(from, to geo.NodeID) ChunkPeer {
	if p := c.Transport.Peer(from, to); p != nil {
		return corruptPeer{p, c}
	}
	return nil
}

type corruptPeer struct {
	ChunkPeer
	c *corrupting
}

func (p corruptPeer) ReadChunk(ref extent.Ref, off int64, b []byte) (int, error) {
	n, err := p.ChunkPeer.ReadChunk(ref, off, b)
	if p.c.on.Load() && n > 0 {
		p.c.reads.Add(1)
		b[n/2] ^= 1
	}
	return n, err
}

// Invariant 5: the copy of a peer is taken only if it matches the reference. While all peers return
// corrupt copies none is taken, and reads of the damaged chunk keep failing. An intact copy repairs it.
//
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestRepairRefusesCorruptPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &corrupting{Transport: memtransport.New()}
		s := newSnapStamp(t, transport, eager)
		refs := s.putChunks(0, 5)
		n := s.Node(s.follower())
		transport.on.Store(true)
		path := s.files(n.ID(), "extents", ".ext")[0]
		b, err := s.fss[n.ID()].(*vfs.MemFS).UnsafeGetFileDataBuffer(path)
		require.NoError(t, err)
		at := strings.Index(string(b), "payload 2 payload 2")
		require.Positive(t, at)
		b[at+9] ^= 4
		require.Eventually(t, func() bool { return transport.reads.Load() > 4 }, electionWait, time.Millisecond)
		_, err = n.ReadChunk(refs[2], 0, make([]byte, refs[2].Length))
		require.ErrorIs(t, err, extent.ErrCorrupt)
		require.Zero(t, n.Scrubber().Stats().Repaired)
		transport.on.Store(false)
		require.Eventually(t, func() bool { return intact(n, refs) }, electionWait, time.Millisecond)
	})
}

// Invariant 5: a bit flipped in a table of one replica, in any block of it, is found by
// the scrub, and the replica is rebuilt by itself. Nobody reads a wrong row meanwhile.
//
// Capability: Storage on a node: A store that fails or is damaged while the node runs.
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestScrubFindsDamagedTable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 2))
				testDamagedStore(t, "state", func(s *snapStamp, id geo.NodeID) {
					tables := s.files(id, "state", ".sst")
					require.NotEmpty(t, tables)
					for _, path := range tables { // One of them may be compacted away unread.
						s.flip(id, path, func(bytes int) int { return rng.IntN(bytes) }, rng)
					}
				})
			})
		})
	}
}

// Invariant 5, R4: so is a bit flipped in the synced part of the log.
//
// Capability: Storage on a node: A store that fails or is damaged while the node runs.
func TestScrubFindsDamagedLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 3))
				testDamagedStore(t, "log", func(s *snapStamp, id geo.NodeID) {
					files, err := s.Node(id).ScrubOptions().Stores[1].Files.Files()
					require.NoError(t, err)
					require.NotEmpty(t, files)
					for _, f := range files { // In each the header, or the frame behind it.
						s.flip(id, f.Path, func(int) int { return 4096*rng.IntN(2) + rng.IntN(16) }, rng)
					}
				})
			})
		})
	}
}

// Rows that a range loads at its start may be damaged in a state store that opens. The store is set
// aside, and the replica is rebuilt into the new one without another start.
//
// Capability: Storage on a node: A store that fails or is damaged while the node runs.
func TestDamagedRowsAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 4))
		var seen events
		s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.OnEvent = seen.takeAll })
		s.write(0, 60, "a")
		s.dropLog(5)
		id := s.follower()
		require.NoError(t, s.Stop(id, true))
		for _, path := range s.files(id, "state", ".sst") {
			s.flip(id, path, func(int) int { return 8 + rng.IntN(8) }, rng) // In the first block of rows.
		}
		s.start(id)
		require.Eventually(t, func() bool { return s.replicaOf(id) > 3 }, 3*electionWait, time.Millisecond)
		s.write(60, 90, "b")
		s.same()
		require.False(t, seen.has(NodeRestarted, 0), "at the first start")
		aside, err := s.fss[id].List("data/" + Name("north", id))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(aside, func(name string) bool { return strings.HasPrefix(name, "state.damaged-") }))
	})
}

// Invariant 5, R4: one bit flipped in any file of a stopped node is never served, and the other nodes
// restore by themselves what it cost: rows and chunks are whole, and the node is in sync again.
func TestFlipAnywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 4))
		var s *snapStamp
		var refs []extent.Ref
		flipped := map[string]int{}
		for round := range flipRounds {
			if round%10 == 0 { // Stores that were never damaged have other files.
				if s != nil {
					require.NoError(t, s.Close())
				}
				s = newSnapStamp(t, memtransport.New(), eager)
				s.write(0, 60, "a")
				refs = s.putChunks(100, 110)
			}
			id := s.follower()
			if round%2 == 0 {
				require.NoError(t, s.Node(id).State().Flush())
			}
			require.NoError(t, s.Stop(id, round%3 == 0))
			var files []string
			for path := range everyFile(t, s.fss[id], "data/"+Name("north", id)) {
				files = append(files, path)
			}
			path := files[rng.IntN(len(files))]
			s.flip(id, path, rng.IntN, rng)
			flipped[kindOf(path)]++
			s.start(id)
			s.write(200, 205, fmt.Sprint(round))
			s.same()
			require.Eventually(t, func() bool { n := s.Node(id); return n != nil && intact(n, refs) }, electionWait, time.Millisecond, path)
		}
		t.Log(flipped)
	})
}

// everyFile walks the files below a folder, in the order of their names.
func everyFile(t *testing.T, fs vfs.FS, dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		names, err := fs.List(dir)
		require.NoError(t, err)
		slices.Sort(names)
		for _, name := range names {
			path := fs.PathJoin(dir, name)
			if strings.Contains(name, ".damaged-") {
				continue
			}
			info, err := fs.Stat(path)
			require.NoError(t, err)
			if info.IsDir() {
				for path := range everyFile(t, fs, path) {
					if !yield(path) {
						return
					}
				}
			} else if info.Size() > 0 && !yield(path) {
				return
			}
		}
	}
}

// kindOf returns a path without its digits: the same text for all files of a kind.
func kindOf(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, path)
}

func testDamagedStore(t *testing.T, store string, damage func(s *snapStamp, id geo.NodeID)) {
	var seen events
	s := newSnapStamp(t, memtransport.New(), func(o *Options) {
		eager(o)
		o.OnEvent = seen.takeAll
	})
	s.write(0, 60, "a")
	refs := s.putChunks(100, 110)
	s.dropLog(5)
	id := s.follower()
	require.NoError(t, s.Node(id).State().Flush())
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
