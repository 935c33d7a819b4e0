package node_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// newStallStamp is a stamp whose state stores are soon full of what waits for its flush. Nobody leaves an in-sync set, so
// that no write is acknowledged without every node.
func newStallStamp(t *testing.T, seen *events) *snapStamp {
	t.Helper()
	s := newSnapStamp(t, memtransport.New(), func(o *Options) {
		o.State.StateMemTableBytes = 64 << 10
		o.InSyncTimeout, o.FlushEntries, o.LogBytesMax = time.Hour, 1<<20, 0
		o.OnEvent = seen.take
	})
	s.openBlobs()
	return s
}

// large is a value that fills a memtable in a few rows.
var large = strings.Repeat("x", 8<<10)

// The state store of a node cannot flush: the node still persists what its ranges commit, and what is acknowledged needs
// that. It applies what it can in memory, then nothing, and all of it once the disk goes on.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestStalledStoreHoldsNoRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s := newStallStamp(t, &seen)
		id := s.follower()
		fs := s.gated(id, true)
		s.same()
		n := s.Node(id)
		behind := func() int {
			lead := s.Leader(testRange)
			if lead == nil {
				return 0
			}
			return int(lead.Machine.AppliedState().Index) - int(n.Range(testRange).Machine.AppliedState().Index)
		}
		for i := 0; behind() < 50; i++ {
			require.Less(t, i, 1000, "it applies more than its memory may hold")
			s.write(i, i+1, large)
		}
		<-fs.came
		last := func() uint64 {
			index, err := n.Log(testRange).LastIndex()
			require.NoError(t, err)
			return index
		}
		applied := n.Range(testRange).Machine.AppliedState().Index
		require.GreaterOrEqual(t, last(), applied+50)
		require.Equal(t, 3, s.Leader(testRange).InSync())
		for range 5 { // Another range of the node shares the store.
			ctx, cancel := context.WithTimeout(t.Context(), electionWait)
			require.NoError(t, s.Submit(ctx, blobs, putBlob{"x"}))
			cancel()
		}
		require.Equal(t, applied, n.Range(testRange).Machine.AppliedState().Index)
		require.Zero(t, seen.times(LeaderTransferred, 0))
		fs.open()
		s.same()
	})
}

// A leader whose state store stands still, and so gives no results, leaves: another one leads, and writes go on. Until then
// it keeps its leadership and its lease. The node applies what it missed once the disk goes on.
func TestStalledLeaderLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s := newStallStamp(t, &seen)
		id := s.follower()
		fs := s.gated(id, true)
		s.same()
		s.makeLeader(id)
		s.write(0, 200, large)
		<-fs.came
		require.Eventually(t, func() bool { return len(seen.reasons(LeaderTransferred)) > 0 }, electionWait, time.Millisecond)
		require.Contains(t, seen.reasons(LeaderTransferred)[0], "cannot flush or compact as fast as it is written")
		require.NotEqual(t, id, s.leader())
		s.write(200, 210, "b")
		require.Less(t, s.Node(id).Range(testRange).Machine.AppliedState().Index, s.Leader(testRange).Machine.AppliedState().Index)
		fs.open()
		s.same()
		for _, p := range []int{0, 199} {
			s.requireRows(p, p+1, "xxx")
		}
	})
}
