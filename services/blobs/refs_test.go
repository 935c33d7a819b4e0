package blobs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
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

// Every row that may name chunks is in one of the spans (R9: what is not read there is dropped), and what clients
// write to a table, a queue and the catalog is in none.
func TestChunkSpans(t *testing.T) {
	name := Name{Account: "acct", Container: "cont", Generation: keys.Generation{Epoch: 1, Created: 2}, Blob: "b"}
	stream := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 2, Lane: 3}
	value, err := appendRow(nil, &Blob{Length: 1, Chunks: []extent.Ref{{ID: extent.ChunkID{1}, Length: 1}}})
	require.NoError(t, err)
	kept := change.Found{Value: value, Chunks: []extent.Ref{{ID: extent.ChunkID{1}, Length: 1}}}
	for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Table, geo.Queue} {
		within := func(key []byte) bool {
			return slices.ContainsFunc(ChunkSpans(s), func(in geo.Span) bool {
				return in.Start <= string(key) && string(key) < in.End
			})
		}
		row := keys.Partition{Service: s, Account: "acct", Container: "c", Object: "o"}.Append(nil)
		found := append(keys.Found(s, stream, 7).Append(nil), name.key()...)
		refs, err := RowChunks(found, change.AppendFound(nil, kept))
		require.NoError(t, err)
		require.Len(t, refs, 1)
		require.True(t, within(found), "%v", s)
		require.Equal(t, s == geo.Blob, within(row), "%v", s)
		for _, elsewhere := range []geo.Service{geo.Catalog, geo.Blob, geo.Table, geo.Queue} {
			other := keys.Partition{Service: elsewhere, Account: "acct", Container: "c", Object: "o"}.Append(nil)
			require.Equal(t, s == elsewhere && s == geo.Blob, within(other))
		}
	}
	require.True(t, slices.ContainsFunc(ChunkSpans(geo.Blob), func(in geo.Span) bool { return in.Start <= string(name.key()) && string(name.key()) < in.End }))
}
