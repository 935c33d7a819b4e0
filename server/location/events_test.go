package location

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
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

// What an operator makes of the link is an event, and what changes nothing is none. A process with all nodes of its location
// reports for that, one with a single node for its own end.
func TestLinkIsAnEvent(t *testing.T) {
	t.Parallel()
	counted := map[node.EventKind]int{}
	for _, local := range [][]geo.NodeID{{1, 2, 3}, {2}} {
		l := &Location{
			o: Options{
				Name: "north", Link: link.New(), Local: local, Logger: slog.New(slog.DiscardHandler),
				OnEvent: func(k node.EventKind) { counted[k]++ },
			},
			events: events{location: "north", clock: clock.System{}},
		}
		for _, to := range []wire.Link{
			{State: wire.LinkUp}, {State: wire.LinkCut}, {State: wire.LinkCut}, {State: wire.LinkDelayed, DelaySeconds: 1.5}, {State: wire.LinkUp},
		} {
			l.SetLink(to)
		}
		l.o.Link.Close()
		want := ""
		if len(local) == 1 {
			want = "north-2"
		}
		var got []string
		for _, e := range l.Events() {
			require.Equal(t, want, e.Node)
			got = append(got, e.Kind+" "+e.Reason)
		}
		require.Equal(t, []string{"link-healed ", "link-delayed by 1.5s", "link-cut "}, got)
	}
	require.Equal(t, map[node.EventKind]int{LinkCut: 2, LinkDelayed: 2, LinkHealed: 2}, counted)
}
