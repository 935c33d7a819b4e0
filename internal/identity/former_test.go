package identity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gateway's certificate from before the rename names the same gateway.
func TestFormerGateway(t *testing.T) {
	id, err := Parse("antipode://cluster/door/east-1")
	require.NoError(t, err)
	require.Equal(t, Identity{Stamp: "cluster", Gateway: "east-1"}, id)
	_, err = Parse("antipode://cluster/door/")
	require.ErrorIs(t, err, ErrName)
}
