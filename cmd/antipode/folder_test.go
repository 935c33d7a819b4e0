package main

import (
	"io"
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
		f, err := openFolder(dir, dataFlag)
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

// A folder with somebody's files is refused with the name of one, and stays as it is, mode included; a folder of ours, and
// one in which a start ended early, is taken.
func TestForeignFolderIsRefused(t *testing.T) {
	for name, entries := range map[string][]string{"notes.txt": {"LOCK", "notes.txt", "photos/"}, "photos": {"photos/"}} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o755))
		for _, e := range entries {
			if filepath.Base(e)+"/" == e {
				require.NoError(t, os.Mkdir(filepath.Join(dir, e), 0o755))
			} else {
				require.NoError(t, os.WriteFile(filepath.Join(dir, e), nil, 0o644))
			}
		}
		// No machine has this address (RFC 5737): without the check the start would end there, and not wait.
		err := runDev(io.Discard, devFlags{portBase: 25300, data: dir, host: "192.0.2.1", zones: []string{"localhost"}, dnsZone: devZone})
		said := "the folder " + dir + " is no data folder of antipode: it has " + name + "; choose an empty or a new folder with "
		require.EqualError(t, err, said+"--data")
		_, err = openFolder(dir, dataField)
		require.EqualError(t, err, said+"the field data of the configuration")
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		require.NoFileExists(t, filepath.Join(dir, "VERSION"))
	}
	dir := t.TempDir()
	for _, name := range []string{"LOCK", newPrefix + "1", "lost+found"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, checkOwn(dir, dataFlag))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "VERSION"), []byte(dataFormat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "admin-token"), nil, 0o600))
	require.NoError(t, checkOwn(dir, dataFlag))
	require.NoError(t, checkOwn(filepath.Join(dir, "none"), dataFlag))
}

// The advice names what chooses the folder, and the right that is missing only where one is.
func TestOtherFolder(t *testing.T) {
	_, err := openFolder("/dev/null/data", dataField)
	require.ErrorContains(t, err, "not a directory; choose another with the field data of the configuration")
	require.Regexp(t, `^give the user with the id \d+ the right to write there, or choose another with --data$`, otherFolder(os.ErrPermission, dataFlag))
}
