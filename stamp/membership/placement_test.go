package membership

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/ranges"
)

// The file stays what docs/format/placement.md shows; any other bytes are refused: a node
// must not guess who its peers are.
func TestPlacementFile(t *testing.T) {
	p := ranges.Placement{Nodes: []geo.NodeID{1, 2, 3, 9}, Ranges: map[geo.RangeID][]geo.NodeID{2: {1, 2, 9}}}
	b := EncodePlacement(p)
	require.Equal(t, "01"+"0400"+"0100000000000000"+"0200000000000000"+"0300000000000000"+"0900000000000000"+
		"0100"+"02000000"+"0100000000000000"+"0200000000000000"+"0900000000000000"+"38a71b5a", hex.EncodeToString(b))
	got, err := ParsePlacement(b)
	require.NoError(t, err)
	require.Equal(t, p, got)
	for i := range b {
		_, err := ParsePlacement(b[:i])
		require.ErrorIs(t, err, ErrPlacement)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, err = ParsePlacement(flipped)
		require.ErrorIs(t, err, ErrPlacement)
	}
	file := durable.Twice(b)
	for _, at := range []int{0, 1, len(b) - 1, len(b), durable.SecondCopy, len(file) - 1} {
		file[at] ^= 4
		got, err := durable.ParseTwice(file, ParsePlacement)
		require.NoError(t, err, "one copy is damaged at %d", at)
		require.Equal(t, p, got)
		file[at] ^= 4
	}
	file[3], file[durable.SecondCopy+3] = 0xff, 0xff
	_, err = durable.ParseTwice(file, ParsePlacement)
	require.ErrorIs(t, err, ErrPlacement)
}

// Any bytes begin with a placement that is written as it was read, or are refused.
func FuzzParsePlacement(f *testing.F) {
	f.Add(EncodePlacement(ranges.Everywhere([]geo.NodeID{1, 2, 3})))
	f.Add(EncodePlacement(ranges.Place([]ranges.Site{{Node: 1}, {Node: 2}, {Node: 3}, {Node: 4}, {Node: 5}}, 1, []geo.RangeID{1, 2, 3, 4})))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParsePlacement(b); err == nil {
			require.True(t, bytes.HasPrefix(b, EncodePlacement(p)))
		}
	})
}

// The checksum of a placement is that of its file beside a bit that no checksum has: it is never the
// zero of a node without placements. Nodes of two versions compare it, so it keeps its value.
func TestSumOf(t *testing.T) {
	require.Equal(t, PlacementSum(0x1349d88f7), SumOf(ranges.Everywhere([]geo.NodeID{1, 2, 3})))
	require.Equal(t, PlacementSum(0x169489041), SumOf(ranges.Everywhere([]geo.NodeID{1, 2, 3, 4, 5})))
}
