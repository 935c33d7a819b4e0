package blobs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// At the moment of each acknowledgement (R3, invariant 1) a crash that loses all
// unsynced data leaves the chunks on all three nodes: each node's extents are cloned at
// that moment, opened alone, and every byte is read from them.
//
// Capability: The primary location: Three replicas.
func TestAcknowledgedPayloadSurvivesOnEveryNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		name := fmt.Sprintf("blob-%d", i)
		body := content(16<<10+1+i*300_000, byte(i))
		if i%2 == 0 {
			require.Equal(t, http.StatusCreated, r.put("/cont/"+name, body).status)
		} else { // In two blocks.
			require.Equal(t, http.StatusCreated, r.create("/cont/"+name).status)
			require.Equal(t, http.StatusCreated, r.append("/cont/"+name, body[:i*150_000]).status)
			require.Equal(t, http.StatusCreated, r.append("/cont/"+name, body[i*150_000:]).status)
		}
		clone := r.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rng})
		chunks := r.chunks(name)
		require.NotEmpty(t, chunks)
		for _, id := range r.stamp.Nodes() {
			requireHolds(t, clone, id, chunks, body)
		}
	}
}

// chunks are the chunks that the stored rows of a blob name, in the order of its payload.
func (r *rig) chunks(name string) (out []extent.Ref) {
	r.t.Helper()
	var c *catalog.Container
	require.NoError(r.t, r.stamp.Read(r.t.Context(), geo.FirstRange(geo.Catalog), func(s ranges.State) (err error) {
		c, err = catalog.GetContainer(s, geo.Blob, r.account.Name, "cont")
		return err
	}))
	require.NoError(r.t, r.stamp.Read(r.t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
		n := blobs.Name{Account: r.account.Name, Container: "cont", Generation: c.Generation(), Blob: name}
		snap := s.Snapshot()
		b, err := blobs.GetBlob(snap, n)
		if err != nil {
			return errors.Join(err, snap.Close())
		}
		w, err := blobs.WindowAt(snap, n, &b, 0, b.Length)
		require.Equal(r.t, b.Length, w.End)
		out = nil
		for i := range w.Parts {
			out = append(out, w.Parts[i].Chunk)
		}
		return errors.Join(err, snap.Close())
	}))
	return out
}

func requireHolds(t *testing.T, fs vfs.FS, id geo.NodeID, chunks []extent.Ref, body []byte) {
	t.Helper()
	store, err := extent.OpenReadOnly(fs, "data/"+node.Name("north", id)+"/extents", extent.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for _, ref := range chunks {
		p := make([]byte, ref.Length)
		_, err := store.Read(ref, 0, p)
		require.NoError(t, err, "node %d lost a chunk of an acknowledged blob", id)
		require.Equal(t, body[:len(p)], p)
		body = body[len(p):]
	}
	require.Empty(t, body)
}
