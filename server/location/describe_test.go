package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/failover/confirm"
	"antipode/failover/witness"
	"antipode/internal/clock"
	"antipode/stamp/skew"
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

// The clock of a node is compared with the one that it differs most from, in either direction.
func TestFarthest(t *testing.T) {
	require.Nil(t, farthest(nil))
	require.Equal(t, -0.25, *farthest([]skew.Offset{{Node: 2, Ahead: time.Millisecond}, {Node: 3, Ahead: -250 * time.Millisecond}, {Node: 4}}))
}

// A lease is shown for as long as it holds: nothing without a witness, and 0 before it granted one and after it has ended.
func TestLeaseIsShown(t *testing.T) {
	now := clock.NewManual(time.Unix(1000, 0))
	c := &confirming{l: &Location{o: Options{Clock: now}}}
	require.Nil(t, c.lease())
	c.l.o.Witness = &witness.Client{}
	require.Zero(t, *c.lease(), "the location is stopped")
	c.begin()
	require.Zero(t, *c.lease())
	c.machine.Step(now.Mono(), confirm.Look{})
	c.machine.Step(now.Mono(), confirm.Exchanged{})
	c.machine.Step(now.Mono(), confirm.Renewed{Grant: witness.Grant{Life: 8 * time.Second}})
	require.Greater(t, *c.lease(), 0.0)
	now.Advance(time.Minute)
	require.Zero(t, *c.lease())
}
