package node_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/membership"
	. "antipode/stamp/node"
	"antipode/stamp/state"
)

// contents returns every file below dir with its bytes, and every folder.
func contents(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			found[path+"/"] = ""
			for k, v := range contents(t, fs, path) {
				found[k] = v
			}
			continue
		}
		f, err := fs.Open(path)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		found[path] = string(b)
	}
	return found
}

// R4: a node does not open the folder of another node, nor that of the node with its number in another location, and
// changes nothing there. It opens its own, and one from before folders had owners, which gets the file.
//
// Capability: Two locations: Feature levels.
func TestR4FolderOfAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		open := func(l geo.Location, id geo.NodeID) error {
			n, err := Open(Options{
				Location: l, ID: id, Peers: []geo.NodeID{1, 2, 3}, Dir: "n", State: state.Options{FS: fs},
				Clock:     clock.NewManual(time.Unix(1_700_000_000, 0)),
				Transport: &lone{peers: map[geo.NodeID]ChunkPeer{}}, Logger: slog.New(slog.DiscardHandler),
			})
			if err == nil {
				err = n.Close(true)
			}
			return err
		}
		require.NoError(t, open("south", 1))
		require.NoError(t, open("south", 1))
		before := contents(t, fs, "n")
		require.Contains(t, before, "n/owner")
		for _, other := range []membership.Owner{{Location: "north", Node: 1}, {Location: "south", Node: 2}} {
			err := open(other.Location, other.Node)
			require.ErrorIs(t, err, membership.ErrOwner)
			require.ErrorContains(t, err, "belongs to node south-1, not to "+Name(other.Location, other.Node))
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, contents(t, fs, "n"))
		}

		require.NoError(t, fs.Remove("n/owner"))
		before = contents(t, fs, "n")
		require.ErrorIs(t, open("south", 2), membership.ErrOwner)
		require.Equal(t, before, contents(t, fs, "n"))
		require.NoError(t, open("south", 1))
		require.Contains(t, contents(t, fs, "n"), "n/owner")
	})
}
