package dev

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// The scrape says what happened (Done-when 9): a stopped node leaves two in sync; a
// cut link makes backlog and age grow, and they add up; requests equal the client's
// count.
func TestScrapeTellsTheWorld(t *testing.T) {
	c := startFaulty(t)
	createTable(t, c, "northacct")
	stopped := geo.NodeID(0)
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if !c.locations[North].Stamp().Node(id).Range(geo.FirstRange(geo.Table)).Leading() {
			stopped = id
		}
	}
	require.NoError(t, control{c}.StopNode(t.Context(), North, stopped))
	drained(t, c)
	c.link.Cut()
	const n = 30
	for i := range n {
		put(t, c, "northacct", fmt.Sprintf("k%d", i), "x")
	}
	scrape := func() map[string]float64 { return gather(t, c) }
	table := `{location="northcentralus",service="table"}`
	eventually(t, "two in sync", func() bool { return scrape()["antipode_in_sync_replicas"+table] == 2 })
	got := scrape()
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
	require.NoError(t, control{c}.StartNode(t.Context(), North, stopped))
	eventually(t, "three in sync", func() bool { return scrape()["antipode_in_sync_replicas"+table] == 3 })
	c.link.Heal()
	eventually(t, "the backlog is gone", func() bool { return scrape()["antipode_stream_backlog_records"+table] == 0 })
}

// committed counts the records of the north table range, and applied those of them that
// the south has applied.
func committed(c *Cluster) (n geo.Seq) {
	heads, _ := c.locations[North].Leader(geo.FirstRange(geo.Table)).Machine.Heads()
	for _, h := range heads {
		n += h.Seq
	}
	return n
}

func applied(c *Cluster) (n geo.Seq) {
	r := geo.FirstRange(geo.Table)
	for _, h := range c.locations[South].Leader(r).Machine.Cursors(ranges.Source{Origin: North, Range: r}) {
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
