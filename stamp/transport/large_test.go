package transport

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
)

// R4 in a stamp of five nodes: the disk of one node of a range is lost. Its new replica
// has an id that is the number of another node, and no message of it may be taken for one
// of that node: the replica is fed and in sync again. A quorum is lost later, and the range
// is re-formed by an operator from the replica that is left.
func TestLostReplicaInStampOfFive(t *testing.T) {
	t.Parallel()
	s := newStampsOf(t, 5, func(o *node.Options) {
		o.RowChunks, o.ElectionTicks = chunkRow, 30
		o.State.LogSegmentBytes = 256 << 10
	})
	s.submit(1, portableGate{})
	row := 0
	write := func() {
		for range 5 {
			s.submit(1+geo.NodeID(row%5), &portable{put: put{row}})
			row++
		}
	}
	// whole: the range has three voters, all in sync, and none is the one of before.
	whole := func(before ...geo.ReplicaID) (members replica.Members) {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, stamp := range s.by {
				r := stamp.Leader(testRange)
				if r == nil || r.InSync() != 3 || len(r.Machine.Members().Voters()) != 3 {
					continue
				}
				members = r.Machine.Members()
				return !slices.ContainsFunc(before, func(id geo.ReplicaID) bool { _, still := members.Of(id); return still })
			}
			return false
		}, 2*testWait, 10*time.Millisecond)
		return members
	}
	wipe := func(id geo.NodeID) {
		s.end(id)
		s.disks[id] = vfs.NewMem()
		s.start(id)
	}
	write()
	on := s.by[1].Placed(testRange)
	require.Len(t, on, 3)
	lead := s.leader()
	lost := on[(slices.Index(on, lead)+1)%3]
	wipe(lost)
	own, ok := whole(replica.FirstID(lost)).On(lost)
	require.True(t, ok)
	require.Equal(t, geo.ReplicaID(5), own.ID, "which is the number of a node without the range")
	write()

	left := on[(slices.Index(on, lost)+1)%3]
	for _, id := range on {
		if id != left {
			wipe(id)
		}
	}
	require.Eventually(t, func() bool {
		r, err := s.by[1+left%5].Recover(t.Context(), testRange, false, nil)
		return err == nil && r.Survivor.Node == left
	}, testWait, 10*time.Millisecond)
	write()
	whole(replica.FirstMembers(on).Next)
	for _, id := range on {
		// A busy machine may be between two leaders.
		require.Eventually(t, func() bool {
			return s.by[id].Read(t.Context(), testRange, func(st ranges.State) error {
				for i := range row {
					_, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r'))
					require.NoError(t, err)
					require.True(t, ok, "row %d at node %d", i, id)
				}
				return nil
			}) == nil
		}, testWait, 10*time.Millisecond, "node %d", id)
	}
}
