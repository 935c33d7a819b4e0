package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/test/devproc"
)

// serverOptions are those of a run that starts its own server.
func serverOptions(t *testing.T, args ...string) Options {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	return options(t, append([]string{"--server", devproc.Binary(), "--dir", t.TempDir()}, args...)...)
}

// A run with a server of its own loads it with as many bytes as configured, reads them back,
// says how much memory that took, and leaves nothing behind.
func TestMeasureOwn(t *testing.T) {
	t.Parallel()
	o := serverOptions(t, "--stop-location", "southcentralus",
		"--workload", "blob-put-4m", "--concurrency", "2", "--warmup", "0s", "--bytes", "16MiB", "--read-back", "4")
	var out strings.Builder
	require.NoError(t, measureOwn(t.Context(), o, clock.System{}, &out))
	require.Contains(t, out.String(), "errors    none")
	require.Contains(t, out.String(), "read back 4 at the primary")
	require.NotContains(t, out.String(), "memory    server 0 MiB")
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
