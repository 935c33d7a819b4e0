package node_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

const catalogRange = geo.RangeID(1)

// raise raises the feature levels.
type raise change.Levels

func (c raise) Evaluate(tx *ranges.Tx) error { return tx.RaiseLevels(change.Levels(c)) }

func (s *mixedStamp) submitCatalog(cmd ranges.Command) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.Submit(context.Background(), catalogRange, cmd) == nil }, electionWait, time.Millisecond)
}

// floor waits until a node has applied a floor.
func (s *mixedStamp) floor(id geo.NodeID, want feature.Level) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		n := s.Node(id)
		return n != nil && n.Opts().Levels.Floor() == want
	}, electionWait, time.Millisecond)
}

// stopsBelow waits until a node has stopped for the floor.
func (s *mixedStamp) stopsBelow(id geo.NodeID, stops int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.seen.reasons(NodeOutOfService)) == stops }, electionWait, time.Millisecond)
	require.ErrorIs(s.t, s.Down(id), feature.ErrFloor)
	for _, reason := range s.seen.reasons(NodeOutOfService) {
		require.Contains(s.t, reason, "finalized at feature level 2, this program knows level 1 at most")
	}
}

// upgradeAll has all nodes know level 2, and returns a follower and its replica.
func (s *mixedStamp) upgradeAll() (follower geo.NodeID, was geo.ReplicaID) {
	s.t.Helper()
	for _, id := range s.Nodes() {
		require.NoError(s.t, s.Stop(id, false))
		s.known[id].Store(2)
		s.start(id)
	}
	s.write(0, 10, "a")
	s.same()
	follower = s.follower()
	return follower, s.replicaOf(follower)
}

// A program that does not know the floor stops once that is committed, with its reason, and again at each start; before
// the floor rose it could be started. Its node has lost nothing: with the later version it goes on as it was. A node that had
// the floor lets the earlier version open nothing, whether its folder says so or only its state.
// It holds R11.
//
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
// Capability: Two locations: Feature levels.
func TestR4FloorStopsEarlierPrograms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMixedStamp(t)
		old, was := s.upgradeAll()
		require.NoError(t, s.Stop(old, false))
		s.known[old].Store(1)
		s.start(old) // A downgrade before the upgrade is finalized.
		s.write(10, 20, "b")
		s.same()

		s.submitCatalog(raise{Floor: 2, Active: 1})
		s.stopsBelow(old, 1)
		s.submitCatalog(raise{Floor: 2, Active: 2})
		s.start(old)
		s.stopsBelow(old, 2)
		s.write(20, 30, "c")

		s.known[old].Store(2)
		s.start(old)
		s.floor(old, 2)
		s.write(30, 40, "d")
		s.same()
		require.Equal(t, was, s.replicaOf(old))

		// Its state has the floor, then its folder too.
		for range 2 {
			require.NoError(t, s.Stop(old, true))
			s.known[old].Store(1)
			require.ErrorIs(t, s.Start(old), feature.ErrFloor)
			s.known[old].Store(2)
			s.start(old)
		}
		b, err := durable.Read(s.fss[old], s.o.Dir+"/"+Name("north", old)+"/level")
		require.NoError(t, err)
		require.Equal(t, "antipode level 2\n", string(b))
		s.same()
		require.Equal(t, was, s.replicaOf(old))

		// The folder alone, before any store is opened.
		require.NoError(t, s.Stop(old, true))
		dir := s.o.Dir + "/" + Name("north", old)
		require.NoError(t, durable.Replace(s.fss[old], dir, "level", []byte("antipode level 3\n")))
		require.ErrorIs(t, s.Start(old), feature.ErrFloor)

		// A damaged one lets nobody in. The floor that the other nodes know mends it, and a level below that lets no earlier
		// program in, since the state has the floor, too.
		require.NoError(t, durable.Replace(s.fss[old], dir, "level", []byte("antipode lev")))
		require.ErrorIs(t, s.Start(old), feature.ErrFile)
		require.ErrorIs(t, s.Down(old), feature.ErrFile)
		require.True(t, s.StaysDown(old))
		s.known[old].Store(1)
		require.NoError(t, durable.Replace(s.fss[old], dir, "level", []byte("antipode level 1\n")))
		require.ErrorIs(t, s.Start(old), feature.ErrFloor)
		s.known[old].Store(2)
		floor := s.Node(old%3 + 1).Opts().Levels.Floor()
		require.NoError(t, durable.Replace(s.fss[old], dir, "level", fmt.Appendf(nil, "antipode level %d\n", floor)))
		s.start(old)
		require.NoError(t, s.Down(old))
		require.False(t, s.StaysDown(old))
		s.same()
		require.Empty(t, s.seen.reasons(ReplicaLost))
		require.Empty(t, s.seen.reasons(StoreDamaged))
	})
}

// The same for a node that was away while the floor rose, and gets it in a range snapshot: it installs nothing.
//
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
// Capability: Two locations: Feature levels.
func TestR4FloorInASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Pointer[string]
		s := newMixedStamp(t, func(o *Options) {
			o.LogBytesMax, o.RowChunks, o.FlushEntries = logBytes, chunkRow, 50
			seen := o.OnEvent
			o.OnEvent = func(e Event) {
				if e.Kind == LaterVersion && e.Range == catalogRange {
					refused.Store(&e.Reason)
				}
				seen(e)
			}
		})
		old, was := s.upgradeAll()
		require.NoError(t, s.Stop(old, true))
		s.submitCatalog(raise{Floor: 2, Active: 2})
		require.Eventually(t, func() bool {
			s.submitCatalog(setGate{openGate})
			lead := s.Leader(catalogRange)
			return lead != nil && s.first(lead) > 3
		}, electionWait, time.Millisecond)

		s.known[old].Store(1)
		s.start(old)
		s.stopsBelow(old, 1)
		require.Contains(t, *refused.Load(), "range snapshot from node")
		s.known[old].Store(2)
		s.start(old)
		s.floor(old, 2)
		s.write(10, 20, "b")
		s.same()
		require.Equal(t, was, s.replicaOf(old))
		require.Empty(t, s.seen.reasons(ReplicaLost))
	})
}

// first is the first index in the log of a leader.
func (s *mixedStamp) first(lead *ranges.Range) uint64 {
	s.t.Helper()
	for _, id := range s.Nodes() {
		if n := s.Node(id); n != nil && n.Range(lead.ID()) == lead {
			first, err := n.Log(lead.ID()).FirstIndex()
			require.NoError(s.t, err)
			return first
		}
	}
	return 0
}
