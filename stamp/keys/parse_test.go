package keys

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/test/golden"
)

// A string comes back as it went in, whatever follows it (property).
func TestStringRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := text().Draw(t, "string")
		tail := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "tail")
		b := AppendString(nil, s)
		got, rest, err := CutString(append(b, tail...))
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.True(t, bytes.Equal(tail, rest))
		for n := range b {
			_, _, err := CutString(b[:n])
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

// Characters that are not stored as they are do not escape notice wherever they stand.
func TestStringAtAnyPlace(t *testing.T) {
	for n := range 20 {
		for _, odd := range []string{"\x00", "é", "😀"} {
			s := strings.Repeat("a", n) + odd + "b"
			got, rest, err := CutString(AppendString(nil, s))
			require.NoError(t, err)
			require.Equal(t, s, got)
			require.Empty(t, rest)
		}
	}
}

// A Cutter cuts what CutString cuts, and the strings that it gave before stay as they were.
func TestCutter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cutter
		var want, got []string
		for range rapid.IntRange(1, 60).Draw(t, "strings") {
			s := rapid.OneOf(text(), rapid.StringMatching("[ -~]{0,40}"), rapid.SampledFrom([]string{"", strings.Repeat("x", 1000), strings.Repeat("x", chunkMax+1)})).Draw(t, "string")
			b := append(AppendString(nil, s), "tail"...)
			if rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
				b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]
			}
			plain, wantRest, wantErr := CutString(b)
			s, rest, err := c.CutString(b)
			require.Equal(t, plain, s)
			require.Equal(t, wantRest, rest)
			require.Equal(t, wantErr, err)
			want, got = append(want, strings.Clone(plain)), append(got, s)
			clear(b)
		}
		require.Equal(t, want, got)
		require.Less(t, c.chunk.Cap(), 2*chunkMax)
	})
}

// A span lies in the account, and in the generation, whose prefixes both of its ends have (table and property).
func TestParseSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPartition(t)
		p.Object = ""
		generation := AppendContainer(nil, p.Service, p.Account, p.Container, p.Generation)
		got, whole, err := ParseSpan(generation, PrefixEnd(generation))
		require.NoError(t, err)
		require.True(t, whole)
		require.Equal(t, p, got)

		of := Partition{Service: p.Service, Account: p.Account}
		account := AppendAccount(nil, p.Service, p.Account)
		for _, span := range [][2][]byte{
			{account, PrefixEnd(account)},
			{generation, append(PrefixEnd(generation), 0)},
			{generation[:len(generation)-1], PrefixEnd(generation)},
			{account, PrefixEnd(generation)},
		} {
			got, whole, err := ParseSpan(span[0], span[1])
			require.NoError(t, err)
			require.False(t, whole)
			require.Equal(t, of, got)
		}

		service := AppendService(nil, p.Service)
		for _, span := range [][2][]byte{
			{service, PrefixEnd(service)},
			{account, PrefixEnd(service)},
			{generation, append(PrefixEnd(account), 0)},
			{generation, generation},
			{PrefixEnd(account), account},
			{nil, nil},
			{Applied(1), Closed(1)},
		} {
			_, _, err := ParseSpan(span[0], span[1])
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

// A partition and a stream come back from their keys as they went in, and a key cut
// anywhere before its end is refused (property).
func TestKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPartition(t)
		key := p.Append(nil)
		got, row, err := ParsePartition(append(bytes.Clone(key), 7))
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.Equal(t, []byte{7}, row)
		for n := range key {
			_, _, err := ParsePartition(key[:n])
			require.ErrorIs(t, err, ErrMalformed)
		}

		r, s, _ := drawStream(t)
		for _, key := range [][]byte{Head(r, s), Trimmed(r, s), Cursor(r, s)} {
			got, rest, err := ParseStreamKey(key)
			require.NoError(t, err)
			require.Equal(t, s, got)
			require.Empty(t, rest)
			for n := range key {
				_, _, err := ParseStreamKey(key[:n])
				require.ErrorIs(t, err, ErrMalformed)
			}
		}
		a, err := ParseGateKey(Gate(r, s.Account))
		require.NoError(t, err)
		require.Equal(t, s.Account, a)
	})
}

// Bytes that no encoder wrote are refused, so that one key has one form (table).
func TestRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"empty":                            "",
		"no terminator":                    "61",
		"half a terminator":                "6100",
		"unknown escape":                   "6100020001",
		"high surrogate alone":             "eda0800001",
		"high surrogate, then a letter":    "eda080610001",
		"low surrogate alone":              "edb0800001",
		"surrogates the wrong way round":   "edb080eda0800001",
		"four-byte UTF-8":                  "f09f98800001",
		"four-byte UTF-8 after a letter":   "61f09080800001",
		"surrogates parted by a zero byte": "eda08000ffedb0800001",
	} {
		b, err := hex.DecodeString(in)
		require.NoError(t, err)
		_, _, err = CutString(b)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	lane32 := Head(4, goldenStream)
	lane32[len(lane32)-1] = geo.LaneCount
	for name, key := range map[string][]byte{
		"gate":                Gate(4, "acct"),
		"applied":             Applied(4),
		"received":            Received(4, "north", 4),
		"data":                goldenPartitions[0].Append(nil),
		"lane out of bounds":  lane32,
		"nothing":             nil,
		"a prefix of the key": Heads(4),
	} {
		_, _, err := ParseStreamKey(key)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	for name, key := range map[string][]byte{
		"head":           Head(4, goldenStream),
		"bytes after it": append(Gate(4, "acct"), 0),
		"nothing":        nil,
	} {
		_, err := ParseGateKey(key)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, _, err := ParsePartition(Head(4, goldenStream))
	require.ErrorIs(t, err, ErrMalformed)
}

func addGolden(f *testing.F) {
	for _, v := range golden.Read(f, goldenPath) {
		if b, err := hex.DecodeString(v); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte{})
	f.Add([]byte{0, 1, 0, 1})
	f.Add([]byte("\xed\xa0\x41\xed\xb0\x41\x00\x01"))
	f.Add([]byte("\xf4\x90\x80\x80\x00\x01"))
	f.Add([]byte("\xf0\x9f\x98\x80\x00\x01"))
}

// Any bytes give a string or an error; what is read encodes back to the same bytes.
func FuzzCutString(f *testing.F) {
	addGolden(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := CutString(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, b, append(AppendString(nil, s), rest...))
		// A string of text comes back from any tail.
		if utf8.Valid(b) {
			got, _, err := CutString(AppendString(nil, string(b)))
			require.NoError(t, err)
			require.Equal(t, string(b), got)
		}
	})
}

// Any bytes give a partition or an error; what is read encodes back to the same bytes.
func FuzzParsePartition(f *testing.F) {
	addGolden(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, row, err := ParsePartition(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, b, append(p.Append(nil), row...))
		require.Less(t, p.Lane(), geo.Lane(geo.LaneCount))
	})
}

// Any bytes give a stream or an error, and a gate's account or an error; what is read
// encodes back to the same bytes.
func FuzzParseStreamKey(f *testing.F) {
	addGolden(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := ParseStreamKey(b)
		if err == nil {
			require.Equal(t, b, append(appendStream(bytes.Clone(b[:rangePrefixLen]), s), rest...))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
		a, err := ParseGateKey(b)
		if err == nil {
			require.Equal(t, b, AppendString(bytes.Clone(b[:rangePrefixLen]), string(a)))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

// Every key of a range comes back from ParseRangeKey as it was made, and a key with a
// byte too few or too many is refused (property).
func TestRangeKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, _ := drawStream(t)
		n := geo.Seq(number().Draw(t, "seq"))
		p := drawPartition(t)
		p.Object = ""
		for _, c := range []struct {
			key  []byte
			want RangeKey
		}{
			{Applied(r), RangeKey{Range: r, Kind: KindApplied}},
			{Closed(r), RangeKey{Range: r, Kind: KindClosed}},
			{Members(r), RangeKey{Range: r, Kind: KindMembers}},
			{Compared(r), RangeKey{Range: r, Kind: KindCompared}},
			{Levels(r), RangeKey{Range: r, Kind: KindLevels}},
			{rangeKey(r, kindRetired), RangeKey{Range: r, Kind: KindRetired}},
			{Gate(r, s.Account), RangeKey{Range: r, Kind: KindGate, Account: s.Account}},
			{Stop(r, s), RangeKey{Range: r, Kind: KindStop, Stream: s}},
			{Image(r, s.Account), RangeKey{Range: r, Kind: KindImage, Account: s.Account}},
			{Head(r, s), RangeKey{Range: r, Kind: KindHead, Stream: s}},
			{Trimmed(r, s), RangeKey{Range: r, Kind: KindTrimmed, Stream: s}},
			{Cursor(r, s), RangeKey{Range: r, Kind: KindCursor, Stream: s}},
			{Outbox(r, s, n), RangeKey{Range: r, Kind: KindOutbox, Stream: s, Seq: n}},
			{Received(r, "north", 7), RangeKey{Range: r, Kind: KindReceived, Origin: "north", Source: 7}},
			{
				ClosedGeneration(r, p.Service, p.Account, p.Container, p.Generation),
				RangeKey{Range: r, Kind: KindGeneration, Partition: p},
			},
		} {
			got, err := ParseRangeKey(c.key)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			_, err = ParseRangeKey(append(bytes.Clone(c.key), 0))
			require.ErrorIs(t, err, ErrMalformed)
			for n := range c.key {
				_, err := ParseRangeKey(c.key[:n])
				require.ErrorIs(t, err, ErrMalformed)
			}
		}
	})
}
