package engine_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/engine"
	"antipode/stamp/engine/logtest"
)

// The Pebble log does what replicas rely on.
func TestConformance(t *testing.T) {
	logtest.Run(t, func(t require.TestingT, fs vfs.FS) engine.Log {
		l, err := engine.OpenLog("log", engine.Options{FS: fs, LogMemTableBytes: 256 << 10})
		require.NoError(t, err)
		return l
	})
}
