package node_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// meteredFS reports as much free space as the test sets.
type meteredFS struct {
	vfs.FS
	left *atomic.Uint64
}

func (fs meteredFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: fs.left.Load(), TotalBytes: 1 << 40}, nil
}

// Before the disk is full, writes and payload are refused as busy and change nothing. Reads, and commands
// that make room, continue; deletions of clients until half of the reserve is used up. Once there is room again writes continue by themselves.
func TestDiskNearlyFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Uint64
		left.Store(1 << 40)
		s := testStamp(t, func(geo.NodeID) vfs.FS { return meteredFS{vfs.NewMem(), &left} })
		ctx := context.Background()
		// A leader learns from messages how much room the others have, and may have another one lead meanwhile.
		taken := func(cmd ranges.Command) {
			t.Helper()
			require.Eventually(t, func() bool { return s.Submit(ctx, testRange, cmd) == nil }, electionWait, time.Millisecond)
		}
		refused := func(cmd ranges.Command) {
			t.Helper()
			var err error
			require.Eventually(t, func() bool {
				err = s.Submit(ctx, testRange, cmd)
				return err == nil || errors.Is(err, kv.ErrBusy)
			}, electionWait, time.Millisecond)
			require.ErrorIs(t, err, kv.ErrBusy)
		}
		taken(&put{p: partition(1), value: "before"})

		set := func(bytes uint64) {
			left.Store(bytes)
			for _, id := range s.Nodes() {
				CheckRoom(s.Node(id))
			}
		}
		data := []byte("payload")
		ref := extent.NewRef(extent.ChunkID{1}, data)
		set(ReserveBytes - 1)
		refused(&put{p: partition(3), value: "refused"})
		require.ErrorIs(t, s.PutChunk(ctx, ref, data), kv.ErrBusy)
		taken(reclaim{})
		taken(deletion{})
		set(ReserveBytes/2 - 1)
		taken(reclaim{})
		refused(deletion{}) // Half of the reserve is not for clients.
		set(ReserveBytes / 2)
		taken(deletion{})
		require.NoError(t, s.Read(ctx, testRange, func(state ranges.State) error {
			_, ok, err := state.Get(append(partition(1).Append(nil), 'r'))
			require.True(t, ok)
			_, refusedIsThere, err2 := state.Get(append(partition(3).Append(nil), 'r'))
			require.False(t, refusedIsThere)
			require.NoError(t, err2)
			return err
		}))

		set(ReserveBytes + RoomMore - 1)
		refused(&put{p: partition(2), value: "x"}) // A little room is not room.
		set(ReserveBytes + RoomMore)
		taken(&put{p: partition(2), value: "x"})
		require.NoError(t, s.PutChunk(ctx, ref, data))
	})
}

// reclaim is a command that is taken on a full disk.
type reclaim struct{}

func (reclaim) Evaluate(tx *ranges.Tx) error {
	tx.Closed()
	return nil
}

func (reclaim) Reclaims() {}

// deletion is a client's command that is taken on a full disk, too.
type deletion struct{}

func (deletion) Evaluate(tx *ranges.Tx) error {
	tx.Closed()
	return nil
}

func (deletion) Deletes() {}
