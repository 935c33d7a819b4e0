package dev

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/membership"
)

// R4: antipode dev does not open the folder of a node's process: it would make five empty nodes beside that one.
func TestR4FolderOfAProcess(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, membership.Claim(vfs.Default, dir, membership.Owner{Kind: membership.Process, Location: North, Node: 1}))
	_, err := Open(ClusterOptions{Dir: dir})
	require.ErrorIs(t, err, membership.ErrOwner)
	require.ErrorContains(t, err, "belongs to node northcentralus-1, not to antipode dev")
	require.NoDirExists(t, filepath.Join(dir, string(South)))
}
