package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/node"
)

// The event log returns the newest events first and keeps at most eventsMax; their numbers show
// how many were dropped.
func TestEventLogIsBounded(t *testing.T) {
	t.Parallel()
	l := &Location{events: events{location: "north", clock: clock.System{}}}
	require.Empty(t, l.Events())
	const n = 2*eventsMax + 7
	for i := range n {
		l.events.add(node.Event{Kind: node.LeftInSync, Range: 4, Node: geo.NodeID(i%3 + 1)})
	}
	list := l.Events()
	require.Len(t, list, eventsMax)
	for i, e := range list {
		require.EqualValues(t, n-i, e.Number)
		require.EqualValues(t, "north", e.Location)
	}
	require.Equal(t, "north-3", list[0].Node)
}
