package planned

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R19: what a node asks of a range that another one leads arrives there, whether it is to close too, and the answer
// comes back. An answer of an earlier version, which names no streams, counts as behind while anything waits.
func TestR19DrainedTravels(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		sent := &drained{account: "acct", gate: change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Open: true}, closes: closes}
		decoded, err := Commands()[sent.Kind()](sent.Encode())
		require.NoError(t, err)
		there := decoded.(*drained)
		require.Equal(t, sent, there)
		there.found = drain{
			Heads: heads{{Range: 4, Lane: 1, Seq: 9, Hash: 5}}, Waiting: 7, Behind: []streamBehind{{Lane: 1, Seq: 8}}, Closed: 6,
		}
		require.NoError(t, sent.DecodeResult(there.EncodeResult()))
		require.Equal(t, there.found, sent.found)
	}
	marked := heads{{Lane: 1, Seq: 9}}
	require.False(t, drain{}.behind(marked))
	require.True(t, drain{Waiting: 7}.behind(marked), "an earlier version")
	require.True(t, drain{Waiting: 7, Behind: []streamBehind{{Lane: 1, Seq: 8}}}.behind(marked))
	require.True(t, drain{Waiting: 7, Behind: []streamBehind{{Lane: 1}}}.behind(marked), "a stopped stream")
	require.False(t, drain{Waiting: 7, Behind: []streamBehind{{Lane: 1, Seq: 9}, {Lane: 2, Seq: 1}}}.behind(marked))
}
