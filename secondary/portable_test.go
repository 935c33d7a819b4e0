package secondary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// batch returns a batch of two records, and of a closed record if closed is set.
func batch(t testing.TB, closed bool) *receive.Batch {
	t.Helper()
	src := geo.SourceRange{Origin: "north", Range: geo.FirstRange(geo.Table)}
	b := &receive.Batch{Source: src}
	for seq := geo.Seq(1); seq <= 2; seq++ {
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p"}
		rec := change.Record{
			Range: src.Range, Service: p.Service, Account: p.Account, Lane: p.Lane(), Seq: seq, CommitTime: geo.Timestamp(10 * seq),
			Epoch: geo.Epoch{Number: 1, Location: "north"}, Partition: p.Append(nil),
			Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
		}
		bytes, err := change.AppendRecord(nil, &rec)
		require.NoError(t, err)
		parsed, err := change.ParseRecord(bytes)
		require.NoError(t, err)
		b.Records = append(b.Records, &receive.Record{Bytes: bytes, Record: parsed})
	}
	if closed {
		b.Closed = &change.Closed{Origin: src.Origin, Range: src.Range, T0: 5, T: 20}
	}
	return b
}

// A batch that is sent to the leader's node arrives unchanged, and so do its outcomes on the way
// back. Outcomes that do not fit the batch are refused and change nothing.
func TestBatchTravels(t *testing.T) {
	for _, closed := range []bool{false, true} {
		here := &apply{b: batch(t, closed)}
		there, err := parseBatch(here.Encode())
		require.NoError(t, err)
		require.Equal(t, here.b, there)

		there.ClosedTaken = closed
		there.Records[0].Outcome, there.Records[1].Outcome = receive.Applied, receive.Gap
		result := (&apply{b: there}).EncodeResult()
		for _, bad := range [][]byte{nil, result[:2], append(result[:3:3], 1), {1, 0, 1}, {1, 1, byte(receive.Refused) + 1}, {2, 1, 1}} {
			require.ErrorIs(t, here.DecodeResult(bad), errApply)
			require.Zero(t, here.b.Records[0].Outcome)
		}
		require.NoError(t, here.DecodeResult(result))
		require.Equal(t, there, here.b)
	}
}

// Any bytes are a batch that encodes and decodes to itself, or an error.
func FuzzParseBatch(f *testing.F) {
	for _, closed := range []bool{false, true} {
		f.Add((&apply{b: batch(f, closed)}).Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := parseBatch(b)
		if err != nil {
			return
		}
		again, err := parseBatch((&apply{b: first}).Encode())
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
