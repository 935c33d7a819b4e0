package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// Each store of our own process takes commits, and leaves nothing behind.
func TestMeasureCommits(t *testing.T) {
	t.Parallel()
	for _, workload := range []string{commitPebble, commitStamp, commitNetwork} {
		dir := t.TempDir()
		var out strings.Builder
		o := options(t, "--workload", workload, "--concurrency", "4", "--duration", "300ms", "--warmup", "0s", "--dir", dir)
		require.NoError(t, measureCommits(t.Context(), o, clock.System{}, &out))
		require.Contains(t, out.String(), "commits/s")
		require.NotContains(t, out.String(), " 0 commits/s")
		require.NoDirExists(t, dir+"/"+workload)
	}
}

// An etcd that is not there is said in one line.
func TestNoEtcd(t *testing.T) {
	o := options(t, "--workload", commitEtcd, "--etcd", "127.0.0.1:1", "--dir", t.TempDir())
	err := measureCommits(t.Context(), o, clock.System{}, &strings.Builder{})
	require.ErrorContains(t, err, "does not take writes")
}
