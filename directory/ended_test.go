package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/ranges"
)

// The end of streams that another node's leader evaluates is the one that was sent: with the knowledge of the other
// location, or without it.
func TestEndStreamsTravel(t *testing.T) {
	for _, known := range []bool{true, false} {
		sent := &endStreams{account: "acct", known: known}
		decoded, err := Commands()[sent.Kind()](sent.Encode())
		require.NoError(t, err)
		require.Equal(t, sent, decoded)
		decoded.(*endStreams).more = true
		require.NoError(t, sent.DecodeResult(decoded.EncodeResult()))
		require.True(t, sent.more)
		_, err = Commands()[sent.Kind()]([]byte("No Account"))
		require.ErrorIs(t, err, errCommand)
		var _ ranges.Reclaimer = sent // It is taken while the disk is nearly full, too.
	}
}
