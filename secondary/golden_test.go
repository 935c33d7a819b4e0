package secondary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/test/golden"
)

// Commands and results of a node of the version before, in the same location, are read as what they meant: a batch and
// its outcomes, and a stop (mixed versions, docs/upgrade.md).
func TestGoldenCommandsAreRead(t *testing.T) {
	t.Parallel()
	sent := &apply{b: batch(t, true)}
	outcomes := &apply{b: batch(t, true)}
	o := outcomes.b
	o.ClosedStops, o.ClosedAhead = true, 3*time.Second
	o.Records[0].Outcome = receive.Applied
	o.Records[1].Outcome, o.Records[1].Ahead, o.Records[1].For = receive.Wait, time.Minute, receive.WaitsForClock
	stopped := &stop{
		stream: geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 3, Location: "north"}, Range: 2, Lane: 7},
		why:    change.Stop{Reason: change.StopVersion, There: geo.Head{Seq: 9, Hash: 0x99}},
	}
	lines := golden.Add(t, "testdata/commands.golden", []golden.Case{
		golden.Hex("secondary.apply", sent.Encode()), golden.Hex("secondary.apply, result", outcomes.EncodeResult()),
		golden.Hex("secondary.stop", stopped.Encode()),
	})
	got, err := parseBatch(golden.Bytes(t, lines[sent.Kind()]))
	require.NoError(t, err)
	require.Equal(t, sent.b, got)
	require.NoError(t, sent.DecodeResult(golden.Bytes(t, lines[sent.Kind()+", result"])))
	require.Equal(t, o, sent.b)
	of, err := parseStop(golden.Bytes(t, lines[stopped.Kind()]))
	require.NoError(t, err)
	require.Equal(t, stopped, of)
}
