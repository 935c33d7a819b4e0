package dev

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// The lag of a lane counts what the primary has and the secondary does not, while the link is cut; when
// the primary has stopped it is what the secondary got notice of, and says so.
//
// Capability: Two locations: How far the secondary is, by service, lane and partition.
func TestLagOfCutLink(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	of := wire.LagQuery{Service: "table", Partition: "tbl/k"}
	lag := func() wire.StreamLag {
		l, err := client.Lag(t.Context(), "northacct", of)
		require.NoError(t, err)
		require.Len(t, l.Streams, 1)
		require.Equal(t, l.Partition.Lane, l.Streams[0].Lane)
		return l.Streams[0]
	}
	before := lag()
	require.Equal(t, []any{uint64(1), uint64(1), wire.HeadsPrimary, uint64(0)}, []any{*before.Applied, *before.Head, before.Heads, *before.LagRecords})

	c.link.Cut()
	for range 3 {
		put(t, c, "northacct", "k", "unsent")
	}
	after := lag()
	require.Equal(t, []any{uint64(1), uint64(4), uint64(3)}, []any{*after.Applied, *after.Head, *after.LagRecords})
	require.False(t, after.SyncTime.IsZero())
	require.Positive(t, *after.LagSeconds)

	require.NoError(t, c.servers[North].Stop())
	alone := lag()
	require.Equal(t, []any{uint64(1), uint64(1), wire.HeadsClosed, uint64(0)}, []any{*alone.Applied, *alone.Head, alone.Heads, *alone.LagRecords})
	l, err := client.Lag(t.Context(), "northacct", wire.LagQuery{})
	require.NoError(t, err)
	require.Len(t, l.Silent, 1)
	require.Equal(t, North, l.Silent[0].Location)
	require.Len(t, l.Services, 3)
}
