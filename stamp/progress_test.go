package stamp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/cursor"
)

// Pages of a progress name every stream once, whatever their order at the leader, and each fits an
// answer.
func TestProgressPages(t *testing.T) {
	const streams = 2*progressPage + 10
	var all []cursor.StreamProgress
	for i := range streams {
		n := (i * 7919) % streams
		all = append(all, cursor.StreamProgress{Stream: geo.Stream{
			Account: "acct", Epoch: geo.Epoch{Number: geo.EpochNumber(n / geo.LaneCount)}, Lane: geo.Lane(n % geo.LaneCount),
		}})
	}
	seen := map[geo.Stream]int{}
	var after *geo.Stream
	for calls := 1; ; calls++ {
		a := progressAnswer{Progress: cursor.Progress{
			Streams: append([]cursor.StreamProgress(nil), all...), Stops: make([]cursor.StreamStop, 1), Ended: map[geo.Account]geo.Epoch{"moved": {Number: 2}},
		}}
		a.cut(after)
		require.Equal(t, after == nil, len(a.Stops) > 0)
		require.Equal(t, after == nil, len(a.Ended) > 0, "once, in the first page")
		require.LessOrEqual(t, len(a.Streams), progressPage)
		for _, s := range a.Streams {
			seen[s.Stream]++
		}
		if !a.More {
			require.Equal(t, 3, calls)
			break
		}
		after = &a.Streams[len(a.Streams)-1].Stream
	}
	require.Len(t, seen, streams)
	for _, n := range seen {
		require.Equal(t, 1, n)
	}
}
