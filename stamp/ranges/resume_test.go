package ranges_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// A stop for a record that could not be decoded ends by a Resume (R11), sent from another node or not; another
// stop, and a stream that may go on, stay as they are (R16).
func TestR11Resume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id, Lane: 3}
		for why := change.NotStopped; why <= change.StopVersion; why++ {
			if why != change.NotStopped {
				stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: why}})
			}
			sent := &ranges.Resume{Stream: st}
			arrived, err := ranges.OwnCommands()[sent.Kind()](sent.Encode())
			require.NoError(t, err)
			stamptest.Submit(t, s, id, arrived)
			require.NoError(t, sent.DecodeResult(arrived.EncodeResult()))
			require.Equal(t, why, sent.Was)
			_, stopped := s.Leader(id).Machine.Stopped(st)
			require.Equal(t, why == change.StopForked || why == change.StopLost, stopped)
			stamptest.Submit(t, s, id, &stop{s: st})
		}
		for _, bad := range [][]byte{nil, {1, 2}, change.AppendStopPart(nil, st, change.Stop{Reason: change.StopForked})} {
			_, err := ranges.OwnCommands()["ranges.resume"](bad)
			require.Error(t, err)
		}
		require.Error(t, (&ranges.Resume{}).DecodeResult(nil))
	})
}
