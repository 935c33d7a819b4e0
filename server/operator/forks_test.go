package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// The streams that may not go on are listed as each location keeps them; a location that does not
// answer is named, and its absence is an error only if nobody answers.
func TestForksOfAllLocations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	north.forks = wire.Forks{Forks: []wire.Fork{{Stream: "a", Location: "north"}}, Silent: []string{"the blob range of north"}}
	south.forks = wire.Forks{Forks: []wire.Fork{{Stream: "a", Location: "south"}, {Stream: "b", Location: "south"}}}
	for what, b := range backends(t, north, south) {
		all, err := b.Forks(t.Context())
		require.NoError(t, err, what)
		require.Len(t, all.Forks, 3, what)
		require.Equal(t, []string{"the blob range of north"}, all.Silent, what)
	}
	south.fail = errors.New("no quorum")
	for what, b := range backends(t, north, south) {
		all, err := b.Forks(t.Context())
		require.NoError(t, err, what)
		require.Equal(t, north.forks.Forks, all.Forks, what)
		require.Equal(t, []string{"the blob range of north", "location south"}, all.Silent, what)
	}
	north.fail = south.fail
	for what, b := range backends(t, north, south) {
		_, err := b.Forks(t.Context())
		require.Error(t, err, what)
	}
}
