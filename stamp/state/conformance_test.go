package state_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/state"
	"antipode/stamp/state/logtest"
)

// The Pebble log does what replicas rely on.
func TestConformance(t *testing.T) {
	logtest.Run(t, func(t require.TestingT, fs vfs.FS) state.Log {
		l, err := state.OpenLog("log", state.Options{FS: fs, LogMemTableBytes: 256 << 10})
		require.NoError(t, err)
		return l
	})
}
