package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// R4: the status names what a node has lost in one line, with the cause and what to do, and says nothing of a node that has
// lost nothing.
func TestR4LostReplicasAreNamed(t *testing.T) {
	n := wire.Node{Name: "north-1", Replicas: []wire.Replica{{Range: 1, Service: "catalog"}, {Range: 4, Service: "table"}}}
	require.Empty(t, lostReplicas("north", n))
	n.Replicas[0].Lost, n.Replicas[1].Lost = "its disk was set back", "it is late"
	require.Equal(t, []string{"north-1 has lost its replicas of range 1 catalog, range 4 table (its disk was set back): they are rebuilt from two others; " +
		"a range without a leader waits for antipodectl range recover north RANGE"}, lostReplicas("north", n))
}
