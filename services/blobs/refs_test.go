package blobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// Every chunk that a row names is found, and rows of other kinds and services name none
// (R3: what a range snapshot misses here would count as held).
func TestRowChunks(t *testing.T) {
	name := Name{Account: "acct", Container: "cont", Generation: keys.Generation{Epoch: 1, Created: 2}, Blob: "b"}
	want := []extent.Ref{{ID: extent.ChunkID{1}, Length: 1 << 20, CRC: 0x01020304}, {ID: extent.ChunkID{15: 2}, Length: 1, CRC: 5}}
	value, err := appendRow(nil, &Blob{Length: 1<<20 + 1, Chunks: want})
	require.NoError(t, err)
	got, err := RowChunks(name.key(), value)
	require.NoError(t, err)
	require.Equal(t, want, got)

	var found []extent.Ref
	for _, kv := range goldenBlockRows(t) {
		refs, err := RowChunks(name.keyOf(kv[0]), kv[1])
		require.NoError(t, err)
		found = append(found, refs...)
	}
	require.Equal(t, want, found, "the two of the one block that has chunks")
	_, err = RowChunks(name.key(), []byte{0xff})
	require.Error(t, err)
}
