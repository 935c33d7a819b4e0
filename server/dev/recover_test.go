package dev

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stats"
)

// R4 and R16, end to end: a write that only two nodes had is lost with them, and the
// survivor goes on without it; the other location, which has it, says so: its copy is
// forked and its statistics are unavailable. While two nodes are there nothing is
// recovered. All ranges of the location come back, with three replicas.
func TestRecoverRange(t *testing.T) {
	c := startFaulty(t)
	k := c.admin
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	table, left := geo.FirstRange(geo.Table), geo.NodeID(0)
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if !runningStamp(c.locations[North]).Node(id).Range(table).Leading() {
			left = id
		}
	}
	drained(t, c)
	require.NoError(t, k.StopNode(t.Context(), North, left))
	eventually(t, "a write that the survivor misses", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"lost"}`)
		return err == nil && a.status == http.StatusNoContent
	})
	eventually(t, "it is in the south", func() bool { return read(t, c, "northacct", "-secondary", "k") == "lost" })
	_, err := k.RecoverRange(t.Context(), North, table, false)
	var refused *wire.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "QuorumPresent", refused.Code)

	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, k.StopNode(t.Context(), North, id))
		}
	}
	require.NoError(t, k.StartNode(t.Context(), North, left))
	for _, id := range location.Ranges() {
		r, err := k.RecoverRange(t.Context(), North, id, false)
		require.NoError(t, err)
		require.Equal(t, wire.NodeName(North, left), r.Survivor)
		require.Len(t, r.SilentNodes, nodesPerLocation-1)
		require.True(t, r.Trusted)
	}
	eventually(t, "the survivor serves reads", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodGet, entityPath("northacct", "", "k"), "")
		return err == nil && a.status == http.StatusOK && strings.Contains(a.body, "kept")
	})
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, k.StartNode(t.Context(), North, id))
		}
	}
	for _, id := range location.Ranges() {
		eventually(t, "three are in sync", func() bool {
			lead := c.locations[North].Leader(id)
			return lead != nil && lead.InSync() == nodesPerLocation
		})
	}
	eventually(t, "writes work", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"after"}`)
		return err == nil && a.status == http.StatusNoContent
	})
	require.Equal(t, "after", read(t, c, "northacct", "", "k"))
	eventually(t, "the statistics are unavailable", func() bool { return tableStats(c, South, "northacct").Status == stats.Unavailable })
	require.Positive(t, c.meters.Alarms.Counts(South)[receive.AlarmFork]+c.meters.Alarms.Counts(North)[receive.AlarmFork])
	require.Equal(t, "lost", read(t, c, "northacct", "-secondary", "k"))

	_, err = k.RecoverRange(t.Context(), North, 99, false)
	require.True(t, errors.As(err, &refused) && refused.Status == http.StatusNotFound)
}
