package transport

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// R4 between processes: two of three nodes lost their disks, and an operator who reaches
// one of those has the range re-formed from the third, over the network. The two are
// rebuilt, and an acknowledged write is served by each.
//
// Capability: Storage on a node: A range without a quorum is re-formed from its best survivor.
func TestRecoverOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := newStamps(t, func(o *node.Options) {
		o.RowChunks, o.ElectionTicks, o.InSyncTimeout = chunkRow, 30, time.Hour
		o.State.LogSegmentBytes = 256 << 10
	})
	s.submit(1, portableGate{})
	s.submit(1, &portable{put: put{1}})
	left := s.leader()%3 + 1
	for id := geo.NodeID(1); id <= 3; id++ {
		s.end(id)
	}
	s.start(left)
	for id := geo.NodeID(1); id <= 3; id++ {
		if id != left {
			s.disks[id] = vfs.NewMem()
			s.start(id)
		}
	}
	asked := left%3 + 1
	var got stamp.Recovered
	require.Eventually(t, func() bool {
		var err error
		got, err = s.by[asked].Recover(t.Context(), testRange, false, nil)
		return err == nil
	}, testWait, 10*time.Millisecond)
	require.Equal(t, left, got.Survivor.Node)
	s.submit(asked, &portable{put: put{2}})
	require.Eventually(t, func() bool {
		r := s.by[left].Leader(testRange)
		return r != nil && r.InSync() == 3
	}, 2*testWait, time.Millisecond)
	for id, stamp := range s.by {
		for _, row := range []int{1, 2} {
			require.NoError(t, stamp.Read(t.Context(), testRange, func(st ranges.State) error {
				_, ok, err := st.Get(append(put{row}.partition().Append(nil), 'r'))
				require.True(t, ok, "row %d at node %d", row, id)
				return err
			}))
		}
	}
}
