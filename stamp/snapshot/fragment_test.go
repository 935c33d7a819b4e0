package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/feature"
)

// The plan stays what docs/format/snapshot.md shows, and any other bytes are no plan: cut
// short, or with one bit flipped.
func TestPlan(t *testing.T) {
	want := plan{id: 4, last: geo.EntryID{Term: 7, Index: 258}, hardTerm: 8, vote: 2}
	b := want.encode()
	require.Equal(t, "01040000000201000000000000070000000000000008000000000000000200000000000000b2b99461", hex.EncodeToString(b))
	got, ok, err := parsePlan(b)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)
	for i := range b {
		_, ok, err := parsePlan(b[:i])
		require.NoError(t, err)
		require.False(t, ok)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, ok, err = parsePlan(flipped)
		require.NoError(t, err)
		require.False(t, ok)
	}

	// R4: a whole one of a later version is neither used nor removed.
	later := binary.LittleEndian.AppendUint32([]byte{planVersion + 1, 9, 9}, crc.Of([]byte{planVersion + 1, 9, 9}))
	_, _, err = parsePlan(later)
	require.ErrorIs(t, err, feature.ErrLater)
}

// Rows come back as they went in; no bytes make eachRow read beyond them.
func FuzzEachRow(f *testing.F) {
	f.Add(appendRow(appendRow(nil, []byte("k"), []byte("v")), nil, bytes.Repeat([]byte("x"), 300)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		err := eachRow(b, func(k, v []byte) error {
			again = appendRow(again, k, v)
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, ErrFragment)
			return
		}
		var third []byte
		require.NoError(t, eachRow(again, func(k, v []byte) error {
			third = appendRow(third, k, v)
			return nil
		}))
		require.Equal(t, again, third)
	})
}
