package node

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The note stays what docs/format/snapshot.md shows, and any other bytes are no note: cut
// short, or with one bit flipped.
func TestNote(t *testing.T) {
	want := note{id: 4, index: 258, term: 7, hardTerm: 8, vote: 2}
	b := want.encode()
	require.Equal(t, "01040000000201000000000000070000000000000008000000000000000200000000000000b2b99461", hex.EncodeToString(b))
	got, ok := parseNote(b)
	require.True(t, ok)
	require.Equal(t, want, got)
	for i := range b {
		_, ok := parseNote(b[:i])
		require.False(t, ok)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, ok = parseNote(flipped)
		require.False(t, ok)
	}
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
			require.ErrorIs(t, err, ErrPiece)
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

// An identity stays what docs/format/identity.md shows; any other bytes are refused: a
// node must not guess who it is (R4).
func TestIdentity(t *testing.T) {
	d := identity{phase: member, replica: 4, nonce: 7, peers: map[geo.NodeID]uint64{1: 5, 2: 6}}
	b := d.encode([]geo.NodeID{1, 2, 3})
	require.Equal(t, "0102040000000000000007000000000000000201000000000000000500000000000000"+
		"02000000000000000600000000000000"+"9bbc489d", hex.EncodeToString(b))
	got, err := parseIdentity(b)
	require.NoError(t, err)
	require.Equal(t, &d, got)
	for i := range b {
		_, err := parseIdentity(b[:i])
		require.ErrorIs(t, err, ErrIdentity)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, err = parseIdentity(flipped)
		require.ErrorIs(t, err, ErrIdentity)
	}

	file := d.file([]geo.NodeID{1, 2, 3})
	require.Equal(t, b, file[:len(b)])
	require.Equal(t, b, file[secondCopy:])
	for _, at := range []int{0, 1, len(b) - 1, len(b), secondCopy, len(file) - 1} {
		file[at] ^= 4
		got, err := parseTwice(file, parseIdentity)
		require.NoError(t, err, "one copy is damaged at %d", at)
		require.Equal(t, &d, got)
		file[at] ^= 4
	}
	file[3], file[secondCopy+3] = 0xff, 0xff
	_, err = parseTwice(file, parseIdentity)
	require.ErrorIs(t, err, ErrIdentity)
	got, err = parseTwice(b, parseIdentity)
	require.NoError(t, err, "a file from before there was a second copy")
	require.Equal(t, &d, got)
}
