package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// The end of streams that another node's leader evaluates is the one that was sent: with the knowledge of the other
// location, or without it.
func TestEndStreamsTravel(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		sent := &record.EndStreams{Account: "acct", Known: known}
		decoded, err := Commands()[sent.Kind()](sent.Encode())
		require.NoError(t, err)
		require.Equal(t, sent, decoded)
		decoded.(*record.EndStreams).More = true
		require.NoError(t, sent.DecodeResult(decoded.EncodeResult()))
		require.True(t, sent.More)
		_, err = Commands()[sent.Kind()]([]byte("No Account"))
		require.ErrorIs(t, err, record.ErrCommand)
		var _ ranges.Reclaimer = sent // It is taken while the disk is nearly full, too.
	}
}

// So are streams that a range forgets: of the account, before the epoch that was sent.
func TestForgetStreamsTravel(t *testing.T) {
	t.Parallel()
	sent := &record.ForgetStreams{Account: "acct", Known: geo.Epoch{Number: 7, Location: "north"}}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	require.Equal(t, sent, decoded)
	decoded.(*record.ForgetStreams).More = true
	require.NoError(t, sent.DecodeResult(decoded.EncodeResult()))
	require.True(t, sent.More)
	require.NoError(t, sent.DecodeResult((&record.ForgetStreams{}).EncodeResult()))
	require.False(t, sent.More)
	var _ ranges.Reclaimer = sent
	for _, bad := range [][]byte{
		nil, []byte("acct"), (&record.SetGate{Account: "acct"}).Encode(), (&record.SetGate{Account: "acct", Gate: change.Gate{Epoch: sent.Known, Open: true}}).Encode(),
		(&record.SetGate{Account: "acct", After: 1, Gate: change.Gate{Epoch: sent.Known}}).Encode(),
	} {
		_, err := Commands()[sent.Kind()](bad)
		require.Error(t, err, "%x", bad)
	}
}
