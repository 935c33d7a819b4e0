package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Whichever replica led, the followers stand in turn, no two at once, and a range begins
// with another one than the next range.
func TestTurns(t *testing.T) {
	m := FirstMembers([]geo.NodeID{1, 2, 3})
	for lead := range geo.ReplicaID(4) {
		for rotate := range 4 {
			var turns []int
			for id := geo.ReplicaID(1); id <= 3; id++ {
				if id == lead {
					continue
				}
				turns = append(turns, m.campaignRank(id, lead, rotate))
				require.NotEqual(t, m.campaignRank(id, lead, rotate), m.campaignRank(id, lead, rotate+1))
			}
			want := []int{0, 1, 2}[:len(turns)]
			require.ElementsMatch(t, want, turns, "after %d, rotated by %d", lead, rotate)
		}
	}
	require.Equal(t, 3, m.campaignRank(9, 0, 0), "one that is no voter comes last")
}
