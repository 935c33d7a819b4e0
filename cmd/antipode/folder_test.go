package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A data folder is for its user alone: a new one, and one that an earlier version made readable for all. A folder that is
// shared, or somebody else's, stays as it is.
func TestDataFolderIsClosedToOthers(t *testing.T) {
	mode := func(dir string) os.FileMode {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		return info.Mode() & (os.ModePerm | os.ModeSticky)
	}
	use := func(dir string) os.FileMode {
		f, err := openFolder(dir)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return mode(dir)
	}
	dir := filepath.Join(t.TempDir(), "deep", "data")
	require.Equal(t, os.FileMode(0o700), use(dir))
	require.Equal(t, os.FileMode(0o700), mode(filepath.Dir(dir)))
	require.Equal(t, os.FileMode(0o600), mode(filepath.Join(dir, "LOCK")))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.Equal(t, os.FileMode(0o700), use(dir), "of an earlier version")

	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	require.Equal(t, 0o777|os.ModeSticky, use(dir))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(dir, 0o775))
		require.NoError(t, os.Chown(dir, 1, 1))
		require.Equal(t, os.FileMode(0o775), use(dir))
	}
}
