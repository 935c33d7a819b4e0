package dev

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/node"
)

// The scrape shows what happened: two replicas in sync while a node is stopped, backlog and age
// that grow while the link is cut and that add up, and as many requests as the client sent.
//
// Capability: Operation: The scrape shows what happened.
// Capability: Operation: The in-sync set by node and since when, the event log.
func TestScrapeShowsTheState(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	stopped := geo.NodeID(0)
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if !runningStamp(c.locations[North]).Node(id).Range(geo.FirstRange(geo.Table)).Leading() {
			stopped = id
		}
	}
	require.NoError(t, c.stopNode(t.Context(), North, stopped))
	drained(t, c)
	c.link.Cut()
	const n = 30
	for i := range n {
		put(t, c, "northacct", fmt.Sprintf("k%d", i), "x")
	}
	scrape := func() map[string]float64 { return gather(t, c) }
	table := `{location="northcentralus",service="table"}`
	eventually(t, "two in sync", func() bool { return scrape()["antipode_in_sync_replicas"+table] == 2 })
	out := fmt.Sprintf(`antipode_replica_in_sync{location="northcentralus",node="%d",range="4"}`, stopped)
	requireStanding(t, c, stopped, false)
	got := scrape()
	require.Contains(t, got, out)
	require.Zero(t, got[out])
	left := got[`antipode_events_total{kind="left-in-sync",location="northcentralus"}`]
	require.Positive(t, left)
	require.InDelta(t, n, got["antipode_stream_backlog_records"+table], 0)
	require.Positive(t, got["antipode_stream_backlog_bytes"+table])
	age := got["antipode_stream_backlog_age_seconds"+table]
	require.Positive(t, age)
	eventually(t, "the backlog grows older", func() bool {
		return scrape()["antipode_stream_backlog_age_seconds"+table] > age+0.1
	})
	// Committed = applied there + in flight + waiting: nothing is between the counts.
	require.InDelta(t, float64(committed(c)), float64(applied(c))+got["antipode_stream_backlog_records"+table], 0)
	require.InDelta(t, n, got[`antipode_requests_total{location="northcentralus",operation="UpdateEntity",service="table",status="204"}`], 0)
	require.NoError(t, c.startNode(t.Context(), North, stopped))
	eventually(t, "three in sync", func() bool { return scrape()["antipode_in_sync_replicas"+table] == 3 })
	requireStanding(t, c, stopped, true)
	got = scrape()
	require.InDelta(t, 1, got[out], 0)
	require.Positive(t, got[`antipode_events_total{kind="returned-in-sync",location="northcentralus"}`])
	c.link.Heal()
	eventually(t, "the backlog is gone", func() bool { return scrape()["antipode_stream_backlog_records"+table] == 0 })
}

// requireStanding: status and event log say of a node's replica of the north table range
// whether it is in sync, and since when.
func requireStanding(t *testing.T, c *Cluster, id geo.NodeID, in bool) {
	t.Helper()
	name := wire.NodeName(North, id)
	kind := node.LeftInSync
	if in {
		kind = node.ReturnedInSync
	}
	var list []wire.Event
	i := -1
	eventually(t, fmt.Sprintf("there is an event %s of %s", kind, name), func() bool { // The replica leaves first.
		list = c.admin.Events(t.Context()).Events
		i = slices.IndexFunc(list, func(e wire.Event) bool { return e.Node == name && e.Range == 4 && e.Kind == string(kind) })
		return i >= 0
	})
	eventually(t, "the status says so", func() bool { // It is up to a moment old.
		l, err := c.locations[North].Describe()
		require.NoError(t, err)
		for _, r := range l.Ranges {
			if r.Range != 4 || r.LeaderView == nil {
				continue
			}
			j := slices.IndexFunc(r.Standings, func(s wire.Standing) bool { return s.Node == name })
			return j >= 0 && r.Standings[j].InSync == in && r.Standings[j].Since.Sub(list[i].Time.Time).Abs() < time.Second
		}
		return false
	})
}

// committed counts the records of the north table range, and applied those of them that
// the south has applied.
func committed(c *Cluster) (n geo.Seq) {
	heads, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	for _, h := range heads {
		n += h.Seq
	}
	return n
}

func applied(c *Cluster) (n geo.Seq) {
	r := geo.FirstRange(geo.Table)
	for _, h := range leaderOf(c, South, r).Machine.Progress(geo.SourceRange{Origin: North, Range: r}, cursor.EveryAccount).Cursors() {
		n += h.Seq
	}
	return n
}

// gather flattens the registry: name{labels in order} to value, counters and gauges.
func gather(t *testing.T, c *Cluster) map[string]float64 {
	t.Helper()
	families, err := c.registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			out[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
		}
	}
	return out
}
