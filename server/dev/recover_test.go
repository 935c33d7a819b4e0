package dev

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stats"
)

var lossAccepted = wire.RecoverRange{AcceptLoss: true}

// R4 and R16, end to end: a write that only two nodes had is lost with them, and the
// survivor goes on without it; the other location, which has it, says so: its copy is
// forked and its statistics are unavailable. While two nodes are there nothing is
// recovered. All ranges of the location come back, with three replicas.
//
// Capability: Storage on a node: A range without a quorum is re-formed from its best survivor.
func TestRecoverRange(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	table, left := geo.FirstRange(geo.Table), follower(c, North)
	drained(t, c)
	require.NoError(t, c.stopNode(t.Context(), North, left))
	eventually(t, "a write that the survivor misses", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"lost"}`)
		return err == nil && a.status == http.StatusNoContent
	})
	eventually(t, "it is in the south", func() bool { return read(t, c, "northacct", "-secondary", "k") == "lost" })
	_, err := c.recoverRange(t.Context(), North, table, lossAccepted)
	var refused *wire.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "QuorumPresent", refused.Code)

	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.stopNode(t.Context(), North, id))
		}
	}
	require.NoError(t, c.startNode(t.Context(), North, left))
	received := map[geo.RangeID]time.Time{}
	for _, id := range c.locations[North].Route().IDs() {
		received[id] = leaderOf(c, South, id).Machine.Known(geo.SourceRange{Origin: North, Range: id}).Closed.Time()
	}
	for _, id := range c.locations[North].Route().IDs() {
		var r wire.RangeRecovered
		eventually(t, "the range is re-formed", func() bool { // Not while the survivor counts a leader, or after its process stood still.
			var err error
			r, err = c.recoverRange(t.Context(), North, id, lossAccepted)
			return err == nil
		})
		require.False(t, r.TimesUnchecked)
		require.False(t, r.Above.Before(received[id]), "range %d", id)
		require.Equal(t, wire.NodeName(North, left), r.Survivor)
		require.Len(t, r.SilentNodes, nodesPerLocation-1)
		require.True(t, r.Trusted)
	}
	eventually(t, "the survivor serves reads", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodGet, entityPath("northacct", "", "k"), "")
		return err == nil && a.status == http.StatusOK && strings.Contains(a.body, "kept")
	})
	requireUncompared(t, c, table, true)
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.startNode(t.Context(), North, id))
		}
	}
	for _, id := range c.locations[North].Route().IDs() {
		eventually(t, "three are in sync", func() bool {
			lead := c.locations[North].Leader(id)
			return lead != nil && lead.InSync() == nodesPerLocation
		})
	}
	eventually(t, "writes work", func() bool {
		a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"after"}`)
		return err == nil && a.status == http.StatusNoContent
	})
	requireUncompared(t, c, table, false)
	require.Equal(t, "after", read(t, c, "northacct", "", "k"))
	eventually(t, "the statistics are unavailable", func() bool { return tableStats(c, South, "northacct").Status == stats.Unavailable })
	eventually(t, "the alarm is counted", func() bool {
		return c.meters.Alarms.Counts(South)[receive.AlarmFork]+c.meters.Alarms.Counts(North)[receive.AlarmFork] > 0
	})
	require.Equal(t, "lost", read(t, c, "northacct", "-secondary", "k"))

	_, err = c.recoverRange(t.Context(), North, 99, lossAccepted)
	require.True(t, errors.As(err, &refused) && refused.Status == http.StatusNotFound)
}

// requireUncompared requires that the status and the metrics of the north show whether a range waits until its gates are
// compared, as it does while it has one replica.
func requireUncompared(t *testing.T, c *Cluster, id geo.RangeID, waits bool) {
	t.Helper()
	d, ok := c.locations[North].Route().Range(id)
	require.True(t, ok)
	status, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(status.Locations, func(l wire.Location) bool { return l.Name == North })
	text, want := "the "+d.Service.String()+" range was recovered with loss", 0.0
	if waits {
		want = 1
		require.Contains(t, strings.Join(status.Locations[i].Warnings, "; "), text)
	} else {
		require.NotContains(t, strings.Join(status.Locations[i].Warnings, "; "), text)
	}
	require.InDelta(t, want, gather(t, c)[`antipode_uncompared_ranges{location="northcentralus",service="`+d.Service.String()+`"}`], 0)
}

// R6: a range that lost commits asks the other location up to which time it has received them, and is
// not re-formed while that does not answer, or is far ahead of the clock here; without the answer only
// if the operator insists, and then the result shows that nothing was checked.
func TestR6RecoveryAsksPair(t *testing.T) {
	t.Parallel()
	var behind atomic.Int64
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == North {
			o.Clock = lateClock{o.Clock, &behind}
		}
	})
	table := geo.FirstRange(geo.Table)
	for id := geo.NodeID(2); id <= nodesPerLocation; id++ {
		require.NoError(t, c.stopNode(t.Context(), North, id))
	}
	// try asks again while the range has a leader, which steps down first.
	try := func(id geo.RangeID, in wire.RecoverRange) (r wire.RangeRecovered, e *wire.Error) {
		t.Helper()
		eventually(t, "no node leads", func() bool {
			var err error
			r, err = c.recoverRange(t.Context(), North, id, in)
			e = nil
			return !errors.As(err, &e) || e.Code != "QuorumPresent"
		})
		return r, e
	}
	// says is a regular expression.
	refused := func(code, says string) {
		t.Helper()
		_, e := try(table, lossAccepted)
		require.NotNil(t, e)
		require.Equal(t, code, e.Code)
		require.Regexp(t, says, e.Message)
		require.Contains(t, e.Message, "nothing was changed")
		require.Contains(t, e.Message, "--without-pair")
		require.NotContains(t, e.Message, "\n")
	}
	c.link.Cut()
	refused("PairSilent", string(South))
	c.link.Heal()
	behind.Store(int64(time.Hour))
	// What was received last is some time old.
	refused("ClockBehind", ", (1h0m|5[0-9]m).* ahead")
	behind.Store(0)
	require.Zero(t, c.locations[North].Leader(table), "nothing was changed")
	r, e := try(table, lossAccepted)
	require.Nil(t, e)
	require.False(t, r.TimesUnchecked)
	eventually(t, "it leads above what the other location has", func() bool {
		lead := c.locations[North].Leader(table)
		return lead != nil && !lead.Machine.AppliedState().Last.Time().Before(r.Above.Time)
	})

	c.link.Cut()
	r, e = try(geo.FirstRange(geo.Queue), wire.RecoverRange{AcceptLoss: true, WithoutPair: true})
	require.Nil(t, e)
	require.True(t, r.TimesUnchecked)
	require.Zero(t, r.Above)
}

// lateClock is behind a clock by as much as a test says.
type lateClock struct {
	clock.Clock
	behind *atomic.Int64
}

func (c lateClock) Now() time.Time { return c.Clock.Now().Add(-time.Duration(c.behind.Load())) }
