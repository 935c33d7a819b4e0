package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The example of the documents is good and has its defaults; what a witness cannot work with is named, with its line.
func TestWitness(t *testing.T) {
	c, problems, err := LoadWitness("../../docs/witness/witness.yaml")
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, []geo.Location{"north", "south"}, c.Locations)
	require.Equal(t, Duration("10s"), c.Lease)
	require.Equal(t, "127.0.0.1:10301", c.Metrics)

	_, _, err = ParseWitness([]byte("location: north\nlocations: [north, north]\ndata: here\nlisten: x\nmetrics: y\nlease: 1s\n"))
	require.Error(t, err)
	for _, want := range []string{"locations[0]", "locations[1]", "data", "listen", "metrics", "lease \"1s\": write a span of time from 2s to 5m0s", "tls"} {
		require.ErrorContains(t, err, want)
	}
	_, _, err = ParseWitness([]byte("locations: [north]\n"))
	require.ErrorContains(t, err, "the two locations of the pair")
}

// A node's witness is at a third place, has an address, and leaves no policy for the time in which the other location is
// away; without a witness that is refuse or accept.
func TestNodeWitness(t *testing.T) {
	single, err := os.ReadFile("../../docs/node/single.yaml")
	require.NoError(t, err)
	with := func(more, away string) error {
		text := strings.Replace(string(single), "  location: annex\n", "  location: annex\n"+away, 1)
		_, _, err := Parse([]byte(text + more))
		return err
	}
	const good = "witness: {location: third, address: 'w.example:10300'}\n"
	require.NoError(t, with("", ""))
	require.NoError(t, with(good, ""))
	require.NoError(t, with("", "  away: accept\n"))
	require.ErrorContains(t, with("", "  away: maybe\n"), "write refuse or accept")
	require.ErrorContains(t, with(good, "  away: accept\n"), "is not used with a witness")
	require.ErrorContains(t, with("witness: {location: annex, address: 'w.example:10300'}\n", ""), "write the third place")
	require.ErrorContains(t, with("witness: {location: third}\n", ""), "witness.address")
}
