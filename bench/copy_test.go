package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A pair of runs has figures of both, and the copy was made in one of them, at its rate; a copy that is complete too soon
// makes the run void.
func TestMeasureCopy(t *testing.T) {
	t.Parallel()
	args := []string{
		"--workload", workloadCopy, "--pairs", "2", "--duration", "1s", "--warmup", "0s", "--concurrency", "2", "--json",
	}
	var out strings.Builder
	require.NoError(t, measureCopy(t.Context(), serverOptions(t, append(args, "--bytes", "4MiB", "--copy-rate", "10KiB")...), clock.System{}, &out))
	var res copyCost
	require.NoError(t, json.Unmarshal([]byte(out.String()), &res))
	require.Len(t, res.Pairs, 2)
	for _, p := range res.Pairs {
		for _, r := range []copyRun{p.Without, p.With} {
			require.Positive(t, r.InsertP99Ms)
		}
		require.Zero(t, p.Without.CopyMBPerSecond)
		require.Positive(t, p.With.CopyMBPerSecond)
	}
	require.NoError(t, res.print(&out, false))
	err := measureCopy(t.Context(), serverOptions(t, append(args, "--bytes", "4KiB")...), clock.System{}, &out)
	require.ErrorIs(t, err, errVoid)
}
