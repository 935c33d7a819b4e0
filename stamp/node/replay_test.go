package node_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
)

// A restart replays only what the last flush does not hold, and that is under 5 % of
// the log after 100,000 writes, a flush and 100 writes. How many
// entries the writes became is up to the machine: the share is asked of a long log only.
// It holds invariant 6.
//
// Capability: The primary location: Nothing acknowledged is lost.
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestRestartReplaysLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fss := map[geo.NodeID]vfs.FS{1: vfs.NewMem(), 2: vfs.NewMem(), 3: vfs.NewMem()}
		s := testStamp(t, func(id geo.NodeID) vfs.FS { return fss[id] })
		write := func(n int) {
			var wg sync.WaitGroup
			for w := range 200 {
				wg.Go(func() {
					for i := w; i < n; i += 200 {
						err := kv.ErrUnknown
						for errors.Is(err, kv.ErrUnknown) || errors.Is(err, kv.ErrBusy) { // A leader was deposed.
							err = s.Submit(context.Background(), testRange, &put{p: partition(i % 5000), value: "x"})
						}
						if err != nil {
							t.Errorf("write %d: %v", i, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		writes := 100_000
		if testing.Short() {
			writes = 5_000
		}
		write(writes)
		flushed := make(map[geo.NodeID]uint64)
		for _, id := range s.Nodes() {
			flushed[id] = s.Node(id).Range(testRange).Machine.AppliedState().Index
			require.NoError(t, s.Node(id).State().Flush())
		}
		write(100)
		logged := s.Leader(testRange).Machine.AppliedState().Index
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, false))
		}
		for _, id := range s.Nodes() {
			require.NoError(t, s.Start(id))
		}
		require.Eventually(t, func() bool { return s.Leader(testRange) != nil }, electionWait, electionWait/1000)
		require.NoError(t, s.Submit(context.Background(), testRange, &put{p: partition(1), value: "y"}))
		for _, id := range s.Nodes() {
			var replayed, applied uint64
			require.Eventually(t, func() bool {
				replayed = s.Node(id).Range(testRange).View().Replayed
				applied = s.Node(id).Range(testRange).Machine.AppliedState().Index
				return applied > logged
			}, electionWait, electionWait/1000)
			require.LessOrEqual(t, replayed, applied-flushed[id], "node %d replayed what its flush held", id)
			if !testing.Short() {
				require.Less(t, replayed, logged/20, "node %d replayed %d of %d entries", id, replayed, logged)
			}
		}
	})
}
