package node_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// R21: a process learns from the nodes of its stamp in other processes whether one of them holds that the epochs are
// confirmed, and which accounts stay refused there. One whose time is over holds nothing, nor does one that is down.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
func TestR21ConfirmedByAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net, machine := memtransport.New(), new(clock.Runtime)
		mono := machine.Mono
		fences := [2]*ranges.Fence{{}, {}}
		var processes [2]*stamp.Stamp
		for i := range processes {
			processes[i] = stamp.New(Options{
				Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: machine, Transport: net, Fence: fences[i],
				Seed: uint64(i), Logger: slog.New(slog.DiscardHandler),
			}, func(o *Options) { o.State = state.Options{FS: vfs.NewMem()} })
			t.Cleanup(func() { require.NoError(t, processes[i].Close()) })
		}
		require.NoError(t, processes[0].Start(1))
		require.NoError(t, processes[0].Start(2))
		require.NoError(t, processes[1].Start(3))
		holds := func() bool {
			_, holds := processes[1].Confirmed(t.Context())
			return holds
		}
		require.False(t, holds())
		fences[0].Set(ranges.Confirmed{Until: mono()})
		require.False(t, holds(), "its time is over")
		fences[1].Set(ranges.Confirmed{Until: mono() + time.Hour})
		require.False(t, holds(), "what it holds itself does not count")
		above := map[geo.Account]geo.Epoch{"moved": {Number: 2, Location: "south"}}
		fences[0].Set(ranges.Confirmed{Until: mono() + time.Hour, Above: above})
		got, ok := processes[1].Confirmed(t.Context())
		require.True(t, ok)
		require.Equal(t, above, got)
		require.NoError(t, processes[0].Stop(1, false))
		require.True(t, holds(), "the other node answers")
		require.NoError(t, processes[0].Stop(2, false))
		require.False(t, holds())
	})
}
