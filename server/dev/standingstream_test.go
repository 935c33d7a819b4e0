package dev

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// R19: the bus into the secondary takes nothing, while its catalog answers. A dry run names that; a planned failover
// closes no gate and ends with a reason that does, so no write ever waits. Once the bus is back the account moves.
//
// Capability: Two locations: Nor over a stream that stands while the other location answers (R19).
func TestR19MoveOverAStandingStream(t *testing.T) {
	t.Parallel()
	site := newBusServers(t, 1)
	c := startAdjusted(t, site.adjust)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	north := c.locations[North].Directory
	eventually(t, "the stream moves", func() bool { return north.Mover().CheckFlow(t.Context(), "northacct") == nil })

	site.stop(0)
	require.NoError(t, north.Mover().CheckMove(t.Context(), "northacct"), "the other location answers")
	err = north.Mover().CheckFlow(t.Context(), "northacct")
	require.ErrorContains(t, err, "southcentralus did not receive what the ")
	_, err = c.locations[North].FailLocationOver(t.Context(), wire.Failover{Type: wire.FailoverPlanned, DryRun: true})
	require.ErrorContains(t, err, "southcentralus did not receive what the ", "the plan of the location's failover names it, too")
	begun, err := north.Mover().Move(t.Context(), "northacct", 3*time.Second)
	require.NoError(t, err)
	for begun.Operation != nil {
		put(t, c, "northacct", "k", "v")
		if begun.Operation.Move.Reason != "" {
			require.Contains(t, begun.Operation.Move.Reason, "its time was over while southcentralus did not ")
		}
		begun, err = north.Account(t.Context(), "northacct")
		require.NoError(t, err)
	}
	for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
		require.Zero(t, c.locations[North].Leader(geo.FirstRange(s)).Machine.Gate("northacct").Turn, "the gate in the %s range has never closed", s)
	}

	site.start(0)
	eventually(t, "the stream moves again", func() bool { return north.Mover().CheckFlow(t.Context(), "northacct") == nil })
	moveTo(t, c, "northacct", North, South)
}
