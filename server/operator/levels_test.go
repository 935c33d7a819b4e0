package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// leveled is a location of three nodes that run and know a level.
func leveled(name, peer geo.Location, levels wire.Levels, known uint32) *fake {
	l := newFake(name)
	l.status.Locations[0].Peer, l.status.Locations[0].Levels = peer, &levels
	for id := range geo.NodeID(3) {
		l.status.Locations[0].Nodes = append(l.status.Locations[0].Nodes, wire.Node{Name: wire.NodeName(name, id+1), State: wire.Running, Level: known})
	}
	return l
}

// An upgrade is finalized at the highest level that all nodes of both locations know: the floor of both first, then what is
// active. What is not seen, or knows less, is named, and nothing is raised (table).
//
// Capability: Two locations: Feature levels.
func TestFinalize(t *testing.T) {
	one, two := wire.Levels{Floor: 1, Active: 1}, wire.Levels{Floor: 2, Active: 2}
	both := []string{"raise levels to 2 1", "raise levels to 2 2"}
	for name, c := range map[string]struct {
		north, south wire.Levels
		change       func(north, south *fake)
		in           wire.Finalize
		// want is what each location was asked, level what comes of it; says is the refusal.
		want  [2][]string
		level uint32
		says  string
		code  string // Without one it is that of a cluster that is not upgraded.
	}{
		"upgraded":               {north: one, south: one, want: [2][]string{both, both}, level: 2},
		"asked for":              {north: one, south: one, in: wire.Finalize{Level: new(uint32(2))}, want: [2][]string{both, both}, level: 2},
		"done":                   {north: two, south: two, level: 2},
		"began before":           {north: wire.Levels{Floor: 2, Active: 1}, south: one, want: [2][]string{both, both}, level: 2},
		"one location is behind": {north: two, south: one, want: [2][]string{{"raise levels to 2 2", "raise levels to 2 2"}, both}, level: 2},
		"a node runs the version before": {
			north: one, south: one, change: func(_, south *fake) { south.status.Locations[0].Nodes[2].Level = 1 }, level: 1,
		},
		"the same, asked for": {
			north: one, south: one, change: func(_, south *fake) { south.status.Locations[0].Nodes[2].Level = 1 }, in: wire.Finalize{Level: new(uint32(2))},
			says: "the program of node south-3 knows level 1 at most, and not 2",
		},
		"a node runs a version without levels": {
			north: one, south: one, change: func(north, _ *fake) { north.status.Locations[0].Nodes[0].Level = 0 },
			says: "node north-1 runs a version without feature levels",
		},
		"a node is away": {
			north: one, south: one, change: func(north, _ *fake) { north.status.Locations[0].Nodes[1].State = wire.Unreachable },
			says: "node north-2 is unreachable",
		},
		"it stays away": {
			north: one, south: one, change: func(north, _ *fake) {
				north.status.Locations[0].Nodes[1] = wire.Node{Name: "north-2", State: wire.Failed}
			},
			in: wire.Finalize{Without: []string{"north-2"}}, want: [2][]string{both, both}, level: 2,
		},
		"a location is away": {
			north: one, south: one, change: func(_, south *fake) {
				south.status.Locations[0].Levels, south.status.Locations[0].State, south.status.Locations[0].Nodes = nil, wire.Unreachable, nil
			},
			says: "location south does not say its levels: it is unreachable",
		},
		"the other location is not seen": {
			north: one, south: one, change: func(north, _ *fake) { north.status.Locations[0].Peer = "west" },
			says: "sees location north alone, and not west",
		},
		"a name that no node has": {
			north: one, south: one, in: wire.Finalize{Without: []string{"north-2", "nroth-3"}}, code: wire.CodeNoNode,
			says: `there is no node "nroth-3" to do without: the nodes are north-1, north-2, north-3, south-1, south-2, south-3`,
		},
		"without all nodes": {
			north: one, south: one, in: wire.Finalize{Without: []string{"north-1", "north-2", "north-3", "south-1", "south-2", "south-3"}},
			says: "no node is left that is seen",
		},
		"level 0":                 {north: one, south: one, in: wire.Finalize{Level: new(uint32(0))}, code: "InvalidInput", says: "no feature level 0: there are 1 to 2;"},
		"a level that nobody has": {north: two, south: two, in: wire.Finalize{Level: new(uint32(3))}, code: "InvalidInput", says: "no feature level 3: there are 2 to 2;"},
		"a level is too low":      {north: two, south: two, in: wire.Finalize{Level: new(uint32(1))}, says: "location north is at level 2 already"},
	} {
		north, south := leveled("north", "south", c.north, 2), leveled("south", "north", c.south, 2)
		if c.change != nil {
			c.change(north, south)
		}
		out, err := over(clock.System{}, north, south).Finalize(t.Context(), c.in)
		if c.says != "" {
			var said *wire.Error
			require.ErrorAs(t, err, &said, name)
			require.Equal(t, cmp.Or(c.code, wire.CodeNotUpgraded), said.Code, name)
			require.Equal(t, map[string]int{"": http.StatusConflict, wire.CodeNoNode: http.StatusNotFound, "InvalidInput": http.StatusBadRequest}[c.code], said.Status, name)
			require.Contains(t, said.Message, c.says, name)
		} else {
			require.NoError(t, err, name)
			require.Equal(t, wire.Finalized{Level: c.level, Raised: c.want[1] != nil, Locations: []geo.Location{"north", "south"}}, out, name)
		}
		require.Equal(t, append([]string{"status"}, c.want[0]...), north.asked, name)
		require.Equal(t, append([]string{"status"}, c.want[1]...), south.asked, name)
	}
}

// A failure in between names the location, and asks for another attempt, which ends it. No location is active before
// the floor of both.
func TestFinalizeAgain(t *testing.T) {
	one := wire.Levels{Floor: 1, Active: 1}
	north, south := leveled("north", "south", one, 2), leveled("south", "north", one, 2)
	raise := south.answers[raiseLevels.Name]
	south.answers[raiseLevels.Name] = func(context.Context, question) error { return errors.New("no leader") }
	_, err := over(clock.System{}, north, south).Finalize(t.Context(), wire.Finalize{})
	require.ErrorContains(t, err, "no leader; location south is not finalized (step 1 of 2): finalize again")
	require.Equal(t, []string{"status", "raise levels to 2 1"}, north.asked)

	south.answers[raiseLevels.Name] = raise
	_, err = over(clock.System{}, north, south).Finalize(t.Context(), wire.Finalize{})
	require.NoError(t, err)
	require.Equal(t, []string{"status", "status", "raise levels to 2 1", "raise levels to 2 2"}, south.asked)
}
