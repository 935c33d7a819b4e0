package dev

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A disk without room for new locations is refused before anything waits for it. Locations that are there start on it,
// with a warning.
func TestDiskWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	check := func(made bool, freeMiB uint64, err error) error {
		log.Reset()
		return checkDisk(ClusterOptions{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil)), free: func(of string) (uint64, error) {
			require.Equal(t, dir, of)
			return freeMiB << 20, err
		}}, made)
	}
	require.EqualError(t, check(true, 639, nil),
		"the disk of "+dir+" has 639 MiB free, and new locations need 640: free some, or choose a folder on another disk with --data")
	require.NoError(t, check(true, 640, nil))
	require.Empty(t, log.String())
	require.NoError(t, check(false, 511, nil))
	require.Contains(t, log.String(), "no writes are taken")
	require.NoError(t, check(false, 512, nil))
	require.Empty(t, log.String())
	require.NoError(t, check(true, 0, errors.New("not reported")))

	_, err := Open(ClusterOptions{Dir: dir, Host: "127.0.0.1", PortBase: 1, free: func(string) (uint64, error) { return 0, nil }})
	require.ErrorContains(t, err, "has 0 MiB free")
	require.NoDirExists(t, filepath.Join(dir, string(North)))
	free, err := freeBytes(os.TempDir())
	require.NoError(t, err)
	require.NotZero(t, free)
}
