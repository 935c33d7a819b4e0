package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// The end of streams that another node's leader evaluates is the one that was sent: with the knowledge of the other
// location, or without it.
func TestEndStreamsTravel(t *testing.T) {
	t.Parallel()
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

// So are streams that a range forgets: of the account, before the epoch that was sent.
func TestForgetStreamsTravel(t *testing.T) {
	t.Parallel()
	sent := &forgetStreams{account: "acct", known: geo.Epoch{Number: 7, Location: "north"}}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	require.Equal(t, sent, decoded)
	decoded.(*forgetStreams).more = true
	require.NoError(t, sent.DecodeResult(decoded.EncodeResult()))
	require.True(t, sent.more)
	require.NoError(t, sent.DecodeResult((&forgetStreams{}).EncodeResult()))
	require.False(t, sent.more)
	var _ ranges.Reclaimer = sent
	for _, bad := range [][]byte{
		nil, []byte("acct"), (&setGate{account: "acct"}).Encode(), (&setGate{account: "acct", gate: change.Gate{Epoch: sent.known, Open: true}}).Encode(),
		(&setGate{account: "acct", after: 1, gate: change.Gate{Epoch: sent.known}}).Encode(),
	} {
		_, err := Commands()[sent.Kind()](bad)
		require.Error(t, err, "%x", bad)
	}
}
