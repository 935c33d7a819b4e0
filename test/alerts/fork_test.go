package alerts

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/rest"
)

// A range that loses its quorum has no leader, and one that is recovered with the loss of an acknowledged write is forked:
// both raise their alerts at the location where it happened, and what the runbook says ends them.
//
// Capability: Operation in Prometheus: The rules as they are, in an hour of load.
func TestForkFires(t *testing.T) {
	const table = "forks"
	s := start(t, *scale)
	ctl, primary, secondary := s.dev.Admin(), s.dev.Client(0, false), s.dev.Client(0, true)
	insert := func(row string) bool {
		a, err := primary.Insert(t.Context(), table, rest.Entity{"PartitionKey": "p", "RowKey": row, "Value": "v"})
		return err == nil && (a.OK() || a.Status == http.StatusConflict) // One whose answer was lost may be there.
	}
	arrived := func(row string) bool {
		_, a, err := secondary.GetEntity(t.Context(), table, "p", row)
		return err == nil && a.OK()
	}
	require.NoError(t, primary.CreateTable(t.Context(), table))
	require.True(t, insert("kept"))
	s.eventually(t, "an entity arrives", func() bool { return arrived("kept") })

	// The survivor misses a write that the other two have, and the other location.
	survivor := s.follower(t)
	must(ctl.StopNode(t.Context(), survivor))(t)
	s.eventually(t, "a write that the survivor misses", func() bool { return insert("lost") })
	s.eventually(t, "it arrives", func() bool { return arrived("lost") })
	var others []string
	for id := geo.NodeID(1); id <= 3; id++ {
		if name := wire.NodeName(north, id); name != survivor {
			others = append(others, name)
			must(ctl.StopNode(t.Context(), name))(t)
		}
	}
	must(ctl.StartNode(t.Context(), survivor))(t)
	s.fireAlert(t, "AntipodeRangeWithoutLeader", map[string]string{"location": string(north), "service": "table"})
	for r := geo.RangeID(1); r <= 4; r++ {
		must(ctl.RecoverRange(t.Context(), north, r, wire.RecoverRange{AcceptLoss: true}))(t)
	}
	for _, name := range others {
		must(ctl.StartNode(t.Context(), name))(t)
	}
	s.endAlert(t, "AntipodeRangeWithoutLeader")
	s.eventually(t, "writes work", func() bool { return insert("after") })

	for _, l := range []geo.Location{north, south} {
		s.fireAlert(t, "AntipodeStreamsStopped", map[string]string{"location": string(l), "service": "table", "reason": "forked", "severity": "critical"})
	}
	s.fireAlert(t, "AntipodeReplicationUnavailable", map[string]string{"location": string(south), "account": "devstoreaccount1", "service": "table", "reason": "forked"})

	forks, err := ctl.Forks(t.Context())
	require.NoError(t, err)
	for _, f := range forks.Forks {
		if f.Side == wire.SideSource {
			must(ctl.Resolve(t.Context(), north, wire.ResolveFork{StreamName: f.Name(), Keep: north}))(t)
		}
	}
	s.endAlert(t, "AntipodeStreamsStopped")
	s.endAlert(t, "AntipodeReplicationUnavailable")
	require.False(t, arrived("lost"), "the primary's side was kept")
}

// follower returns a node of the north that does not lead the table range.
func (s *stand) follower(t *testing.T) (name string) {
	t.Helper()
	s.eventually(t, "the table range has a leader", func() bool {
		status, err := s.dev.Admin().Status(t.Context())
		require.NoError(t, err)
		for _, l := range status.Locations {
			for _, r := range l.Ranges {
				if l.Name != north || r.Service != "table" || r.LeaderView == nil {
					continue
				}
				_, leads, err := wire.ParseNodeName(r.Leader)
				require.NoError(t, err)
				name = wire.NodeName(north, leads%3+1)
			}
		}
		return name != ""
	})
	return name
}
