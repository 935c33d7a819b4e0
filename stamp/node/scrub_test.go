package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// eager makes the scrubber do round after round.
func eager(o *Options) {
	o.ScrubPeriod = 20 * time.Millisecond
	o.RestartAfter = 10 * time.Millisecond
	o.State.Logger = o.Logger // Pebble says loudly what these tests do to it.
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

// A chunk that vanished from a node together with its extent is found missing by the walk over the names,
// and copied from a peer.
// It holds invariant 5.
func TestMissingChunksAreCopied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
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
	})
}

// A damaged store stays in service while another replica is away: setting it aside would
// cost the range its quorum. It goes when the others are whole again.
func TestDamagedStoreWaitsForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
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
			silent := false
			err := n.Work(t.Context(), func() (refusal, failure error) {
				silent = n.Silent(other)
				return nil, nil
			})
			return err == nil && silent
		}, electionWait, 10*time.Millisecond)
		n.Quarantine("state", errors.New("a test says so"))
		at := s.Leader(testRange).Machine.AppliedState().Index
		s.write(61, 80, "c")
		require.Greater(t, s.Leader(testRange).Machine.AppliedState().Index, at)
		require.Same(t, n, s.Node(id))
		require.NoError(t, n.Failed())
		s.start(other)
		require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, 3*electionWait, time.Millisecond)
		s.same()
	})
}
