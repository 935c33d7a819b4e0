package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of the documents is good and has its defaults; what a door cannot work with
// is named, with its line.
func TestDoor(t *testing.T) {
	d, problems, err := LoadDoor("../../docs/frontdoor/frontdoor.yaml")
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, d.Locations, 2)
	require.Equal(t, "10.1.0.3:10080", d.Locations[1].Nodes[2].Admin)
	d, _, err = ParseDoor([]byte("locations: [{location: north, nodes: [{node: 1, blob: 'h:1', queue: 'h:2', table: 'h:3'}]}]"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:10080", d.Listen.Admin)

	_, problems, err = ParseDoor([]byte(`locations:
  - location: north
    nodes: [{node: 1, blob: "h:1", queue: ":2", table: "h:3"}, {node: 1, blob: "h:1", queue: "h:2", table: "h:3"}]
  - location: north
`))
	require.Error(t, err)
	require.Equal(t, `locations[1].nodes: is missing: write the nodes of the location
line 3: locations[0].nodes[0].queue ":2": others connect to it: write a name or address of one machine, such as 10.0.0.1:2
line 3: locations[0].nodes[1].node "1": write the node's number within its stamp, from 1, each once
line 4: locations[1].location "north": is there twice: write each location once`, problems.Error())
	_, _, err = ParseDoor([]byte("listen: {admin: h}"))
	require.ErrorContains(t, err, "locations: is missing")
}
