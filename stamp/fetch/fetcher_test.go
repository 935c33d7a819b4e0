package fetch

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/room"
)

// peers are the stores of the peers; who is not among them is not reachable.
type peers map[geo.NodeID]peer

// peer has some chunks, by the first letter of their ids, and asked is which node was asked when.
type peer struct {
	id    geo.NodeID
	has   map[byte][]byte
	asked *[]geo.NodeID
}

func (p peer) ReadChunk(ref extent.Ref, _ int64, to []byte) (int, error) {
	*p.asked = append(*p.asked, p.id)
	data, ok := p.has[ref.ID[0]]
	if !ok {
		return 0, extent.ErrNotFound
	}
	return copy(to, data), nil
}

func refOf(i byte) (extent.Ref, []byte) {
	data := []byte{i, 1, 2}
	return extent.NewRef(extent.ChunkID{i}, data), data
}

// newFetcher returns the Fetcher of node 1 of three; what it begins waits in work.
func newFetcher(t *testing.T, at peers) (f *Fetcher, store *extent.Store, work *[]func()) {
	store, err := extent.Open(vfs.NewMem(), "extents", extent.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	work = new([]func())
	return New(t.Context(), Options{
		Chunks: store, Peers: []geo.NodeID{2, 3}, Room: room.New(room.Options{}), BytesPerSecond: 1 << 30, Wake: func() {},
		Peer: func(of geo.NodeID) Peer {
			if p, ok := at[of]; ok {
				return p
			}
			return nil
		},
		Go: func(f func()) { *work = append(*work, f) }, Logger: slog.New(slog.DiscardHandler),
	}), store, work
}

// A chunk comes from the peer that is asked first, if it has it, else from another one; what does not match is not taken.
func TestCopyAsksAllPeers(t *testing.T) {
	ref, data := refOf(7)
	var asked []geo.NodeID
	at := peers{2: {2, map[byte][]byte{7: {7, 7, 7}}, &asked}, 3: {3, map[byte][]byte{7: data}, &asked}}
	f, store, _ := newFetcher(t, at)
	require.NoError(t, f.Copy(ref, 0))
	require.Equal(t, []geo.NodeID{2, 3}, asked)
	require.Equal(t, []extent.Ref{ref}, store.Refs())

	f, _, _ = newFetcher(t, at)
	asked = nil
	require.NoError(t, f.Paced(t.Context(), ref, 3))
	require.Equal(t, []geo.NodeID{3}, asked)
	require.NoError(t, f.o.Chunks.Sync(t.Context()))
	require.NoError(t, f.Paced(t.Context(), ref, 3))
	require.Len(t, asked, 1, "it is here")

	delete(at, 3)
	f, store, _ = newFetcher(t, at)
	asked = nil
	err := f.Copy(ref, 2)
	require.ErrorIs(t, err, extent.ErrMismatch)
	require.ErrorIs(t, err, ErrUnreachable)
	require.Equal(t, []geo.NodeID{2}, asked)
	require.Empty(t, store.Refs())
	require.NoError(t, f.Retry())
}

// A fetch that failed is not repeated before Retry. That the chunk is gone is reported only if the peer that named it says so:
// one that is not reached may have it.
func TestBeginReportsWhatIsGone(t *testing.T) {
	ref, data := refOf(7)
	var asked []geo.NodeID
	at := peers{3: {3, nil, &asked}}
	f, store, work := newFetcher(t, at)
	try := func() bool {
		require.NoError(t, f.Retry())
		require.False(t, f.Begin(ref, 2))
		require.False(t, f.Begin(ref, 2), "under way")
		require.Len(t, *work, 1)
		(*work)[0]()
		*work = nil
		gone := f.Begin(ref, 2)
		return gone
	}
	require.False(t, try(), "2 is away")
	require.Empty(t, *work, "before Retry")
	at[2] = peer{2, nil, &asked}
	require.True(t, try())
	require.Empty(t, *work, "before Retry")
	at[3] = peer{3, map[byte][]byte{7: data}, &asked}
	require.False(t, try())
	require.True(t, store.Durable(ref.ID))
}

// Max are under way at once, and none after Close. A store that failed is reported for good.
func TestBeginIsBounded(t *testing.T) {
	f, store, work := newFetcher(t, peers{2: {2, map[byte][]byte{1: {1, 1, 2}}, new([]geo.NodeID)}})
	for i := range byte(Max + 2) {
		ref, _ := refOf(i)
		f.Begin(ref, 2)
	}
	require.Len(t, *work, Max)
	require.NoError(t, store.Close())
	f.ended(extent.ChunkID{1}, errors.Join(extent.ErrFailed))
	require.ErrorIs(t, f.Retry(), extent.ErrFailed)
	f.Close()
	ref, _ := refOf(100)
	f.Begin(ref, 2)
	require.Len(t, *work, Max)
}
