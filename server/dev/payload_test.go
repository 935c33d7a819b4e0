package dev

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair"
	"antipode/server/location"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// A leader proposes no change whose payload it does not hold itself (R3): it may have
// been away when the payload came.
// It holds invariant 1.
func TestLeaderWithoutPayloadRefuses(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	north := c.locations[North]
	create := &catalog.Create{Service: geo.Blob, Account: "northacct", Name: "cont"}
	require.NoError(t, north.Primary.Write(t.Context(), create))
	data := []byte("payload")
	put := &blobs.PutBlob{
		Command: blobs.Command{
			Name: blobs.Name{Account: "northacct", Container: "cont", Generation: create.Created.Generation(), Blob: "b"},
		},
		Blob: blobs.Blob{Length: uint64(len(data)), Chunks: []extent.Ref{extent.NewRef(extent.ChunkID{1}, data)}},
	}
	require.ErrorIs(t, north.Primary.Write(t.Context(), put), kv.ErrBusy)
	require.NoError(t, north.Read(t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
		_, err := blobs.GetBlob(s, put.Name)
		require.ErrorIs(t, err, storageerr.BlobNotFound)
		return nil
	}))
	require.NoError(t, north.PutChunk(t.Context(), put.Blob.Chunks[0], data))
	require.NoError(t, north.Primary.Write(t.Context(), put))
}

// A blob whose record names chunks that the other location has, as a copy's does, is there once the others are pushed:
// those that it has do not cross again. A small one is pushed without a question.
func TestPushOfSharedChunks(t *testing.T) {
	t.Parallel()
	w := map[geo.Location]*callWire{North: newCallWire(0), South: newCallWire(0)}
	var l *link.Link
	c := startWith(t, ClusterOptions{
		adjust: func(o *location.Options) { l = o.Link },
		end: func(far *location.Location) pair.End {
			pair.Serve(w[far.Location()], l, direct(far))
			return pair.NewRemote(w[far.Location()])
		},
	})
	north, south := c.locations[North], c.locations[South]
	create := &catalog.Create{Service: geo.Blob, Account: "northacct", Name: "cont"}
	require.NoError(t, north.Primary.Write(t.Context(), create))
	content := map[extent.Ref][]byte{}
	chunk := func(i byte) extent.Ref {
		data := blobContent(blobs.ChunkBytesMax, i)
		ref := extent.NewRef(extent.ChunkID{i}, data)
		if content[ref] == nil {
			require.NoError(t, north.PutChunk(t.Context(), ref, data))
			content[ref] = data
		}
		return ref
	}
	asked := func() (questions, put int) {
		w := w[South]
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.calls["link.MissingChunks"], w.calls["link.PutChunk"]
	}
	for _, b := range []struct {
		name           string
		chunks         []extent.Ref
		questions, put int
	}{
		{"small", []extent.Ref{chunk(1)}, 0, 1},
		{"large", []extent.Ref{chunk(1), chunk(2), chunk(3), chunk(4), chunk(5), chunk(6)}, 1, 5},
		{"copy", []extent.Ref{chunk(1), chunk(2), chunk(3), chunk(4), chunk(5), chunk(6)}, 1, 0},
		{"changed copy", []extent.Ref{chunk(1), chunk(2), chunk(3), chunk(7), chunk(4), chunk(5), chunk(6)}, 1, 1},
	} {
		questions, put := asked()
		cmd := &blobs.PutBlob{
			Command: blobs.Command{
				Name: blobs.Name{Account: "northacct", Container: "cont", Generation: create.Created.Generation(), Blob: b.name},
			},
			Blob: blobs.Blob{Length: uint64(len(b.chunks) * blobs.ChunkBytesMax), Chunks: b.chunks},
		}
		require.NoError(t, north.Primary.Write(t.Context(), cmd))
		eventually(t, b.name+" arrives", func() bool {
			return south.Read(t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
				_, err := blobs.GetBlob(s, cmd.Name)
				return err
			}) == nil
		})
		asks, puts := asked()
		require.Equal(t, b.questions, asks-questions, b.name)
		require.Equal(t, b.put, puts-put, b.name)
		for _, ref := range b.chunks {
			got := make([]byte, ref.Length)
			_, err := south.ReadChunk(ref, 0, got)
			require.NoError(t, err)
			require.Equal(t, content[ref], got)
		}
	}
}

// Where a location has no quorum, the gateway asks the other one and does not wait.
func TestGatewayWithoutQuorum(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	eventually(t, "the value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "v" })
	for id := geo.NodeID(1); id < nodesPerLocation; id++ {
		require.NoError(t, c.stopNode(t.Context(), North, id))
	}
	// The north reports after 5 s only that it has no leader.
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	a, err := c.admin.Account(ctx, "northacct")
	require.NoError(t, err)
	require.Equal(t, South, a.Secondary)
}

// Options that the service never had are refused, not ignored (protocol/table.md 1.5).
func TestUnbuiltQueryOptions(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	for _, option := range []string{"$orderby=v", "$skip=1", "$expand=x"} {
		for _, target := range []string{"/northacct/tbl()?", "/northacct/Tables?"} {
			a := call(t, c.gateway, "northacct", http.MethodGet, target+option, "")
			require.Equal(t, http.StatusNotImplemented, a.status, target+option)
		}
	}
}
