package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
)

// `inspect` refuses a folder that a process uses, asks which node is meant, reports on a
// stopped one, and ends with an error where something is damaged.
//
// Capability: Operation: `antipode inspect log`, `state`, `extents`, `lanes`.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	used, err := openFolder(dir, dataFlag)
	require.NoError(t, err)
	for _, id := range []geo.NodeID{1, 2} {
		n, err := node.Open(node.Options{
			Location: "north", ID: id, Peers: []geo.NodeID{1, 2, 3}, Dir: filepath.Join(dir, "north", node.Name("north", id)),
			Clock: clock.System{}, Transport: memtransport.New(),
		})
		require.NoError(t, err)
		require.NoError(t, n.Close(true))
	}
	_, err = run(inspectCommand(), "log", "--data", dir)
	require.ErrorContains(t, err, "is in use by an antipode that runs; stop it first")
	_, err = run(inspectCommand(), "log", "--data", filepath.Join(dir, "north", "north-1"))
	require.ErrorContains(t, err, "is in use")
	require.NoError(t, used.Close())

	_, err = run(inspectCommand(), "log", "--data", dir)
	require.ErrorContains(t, err, "holds several nodes: choose one with --node: north-1, north-2")
	for _, report := range []string{"log", "state", "extents", "lanes"} {
		_, err = run(inspectCommand(), report, "--data", dir, "--node", "north-1")
		require.NoError(t, err)
	}
	said, err := run(inspectCommand(), "log", "--data", filepath.Join(dir, "north", "north-1"), "--output", "json")
	require.NoError(t, err)
	require.Contains(t, said, `{"type":"segment","segment":1,"use":"active"`)

	manifest, err := filepath.Glob(filepath.Join(dir, "north", "north-1", "state", "MANIFEST-*"))
	require.NoError(t, err)
	require.NoError(t, vfs.Default.Remove(manifest[0]))
	said, err = run(inspectCommand(), "state", "--data", dir, "--node", "north-1")
	require.ErrorContains(t, err, "damaged places, shown above: 1; ")
	require.Contains(t, said, "DAMAGED state")
	_, err = os.Stat(manifest[0])
	require.ErrorIs(t, err, os.ErrNotExist)
}
