package secondary

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
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
	t.Parallel()
	for _, closed := range []bool{false, true} {
		here := &apply{b: batch(t, closed)}
		there, err := parseBatch(here.Encode())
		require.NoError(t, err)
		require.Equal(t, here.b, there)

		there.ClosedTaken = closed
		there.ClosedStops, there.ClosedAhead = closed, 3*time.Hour
		there.Records[0].Outcome, there.Records[1].Outcome, there.Records[1].Ahead = receive.Applied, receive.Wait, time.Minute
		there.Records[1].For = receive.WaitsForPayload
		result := (&apply{b: there}).EncodeResult()
		for _, bad := range [][]byte{
			nil, result[:2], result[:len(result)-1], append(slices.Clone(result), 1), {1, 0, 1, 0}, {1, 1, byte(receive.UnknownVersion) + 1, 0}, {8, 1, 1, 0},
		} {
			require.ErrorIs(t, here.DecodeResult(bad), errApply)
			require.Zero(t, here.b.Records[0].Outcome)
		}
		require.NoError(t, here.DecodeResult(result))
		require.Equal(t, there, here.b)
	}
}

// A record that the leader's node cannot decode, such as one of a later version, fails no batch: the
// others are evaluated, and its own outcome comes back (R11).
func TestR11UndecodableRecordTravels(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{false, true} {
		here := &apply{b: batch(t, true)}
		bad := here.b.Records[0]
		bad.Bytes = slices.Clone(bad.Bytes)
		want, outcome := change.StopPoison, receive.Undecodable
		if bad.Bytes[0]++; later {
			n := len(bad.Bytes) - 4
			binary.LittleEndian.PutUint32(bad.Bytes[n:], crc.Of(bad.Bytes[:n]))
			want, outcome = change.StopVersion, receive.UnknownVersion
		}
		there, err := parseBatch(here.Encode())
		require.NoError(t, err)
		require.Equal(t, &receive.Record{Bytes: bad.Bytes, Bad: want}, there.Records[0])
		require.Equal(t, here.b.Records[1], there.Records[1])
		there.Records[0].Outcome, there.Records[1].Outcome = outcome, receive.Gap
		require.NoError(t, here.DecodeResult((&apply{b: there}).EncodeResult()))
		require.Equal(t, outcome, bad.Outcome)
	}
}

// Nor does a closed record that the leader's node cannot decode for its version: the records are evaluated, and
// it is not taken (R11).
func TestR11LaterClosedRecordTravels(t *testing.T) {
	t.Parallel()
	here := &apply{b: batch(t, true)}
	sent := here.Encode()
	sent[len(sent)-len(change.AppendClosed(nil, here.b.Closed))] = 3
	there, err := parseBatch(sent)
	require.NoError(t, err)
	require.Equal(t, here.b.Records, there.Records)
	require.Nil(t, there.Closed)
	there.Records = nil
	require.NoError(t, (&apply{b: there}).Evaluate(nil))
	require.False(t, there.ClosedTaken)
	there.Records = []*receive.Record{{Outcome: receive.Applied}, {Outcome: receive.Gap}}
	require.NoError(t, here.DecodeResult((&apply{b: there}).EncodeResult()))
	require.True(t, here.b.ClosedLater && !here.b.ClosedTaken)
	require.Equal(t, receive.Applied, here.b.Records[0].Outcome)

	sent[len(sent)-1] ^= 0xff // A damaged one is none of a later version.
	sent[len(sent)-len(change.AppendClosed(nil, here.b.Closed))] = 1
	_, err = parseBatch(sent[:len(sent)-1])
	require.ErrorIs(t, err, errApply)
}

// A stop that is sent to the leader's node arrives unchanged. Bytes that are none are refused.
func TestR16StopTravels(t *testing.T) {
	t.Parallel()
	here := &stop{
		stream: geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 3, Location: "north"}, Range: 2, Lane: 7},
		why:    change.Stop{Reason: change.StopLost, There: geo.Head{Seq: 9, Hash: 0x99}},
	}
	there, err := Commands(nil)[here.Kind()](here.Encode())
	require.NoError(t, err)
	require.Equal(t, here, there)
	require.NoError(t, here.DecodeResult(there.EncodeResult()))
	require.Error(t, here.DecodeResult([]byte{0}))
	_, err = parseStop(here.Encode()[1:])
	require.Error(t, err)
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
