package flow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/ship"
)

// R17: a stream of an epoch that the account has left is shown as ended, one of the present epoch is not.
func TestR17SourceOfFormerEpoch(t *testing.T) {
	heads := map[geo.Stream]geo.Head{}
	for n := range geo.EpochNumber(2) {
		heads[geo.Stream{Account: "photos", Epoch: geo.Epoch{Number: 1 + n, Location: "north"}, Range: 4, Lane: 3}] = geo.Head{Seq: 7}
	}
	out := Source("photos", heads, geo.Epoch{Number: 2, Location: "north"}, ship.View{})
	require.Len(t, out.Streams, 2)
	require.True(t, out.Streams[0].Ended)
	require.False(t, out.Streams[1].Ended)
}
