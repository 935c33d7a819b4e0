package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A pair of runs has figures of both, and the scrub read in one of them alone: else the
// run were void.
func TestMeasureScrub(t *testing.T) {
	t.Parallel()
	o := serverOptions(t, "--workload", workloadScrub, "--bytes", "8MiB", "--pairs", "1", "--scrub-period", "1s",
		"--duration", "1s", "--warmup", "0s", "--concurrency", "2", "--rows", "100", "--json")
	var out strings.Builder
	require.NoError(t, measureScrub(t.Context(), o, clock.System{}, &out))
	var res scrubCost
	require.NoError(t, json.Unmarshal([]byte(out.String()), &res))
	require.Len(t, res.Pairs, 1)
	p := res.Pairs[0]
	for _, r := range []scrubRun{p.Without, p.With} {
		require.Positive(t, r.GetP99Ms)
		require.Positive(t, r.InsertP99Ms)
	}
	require.Positive(t, p.With.ScrubMBPerSecs)
	require.InDelta(t, p.With.GetP99Ms/p.Without.GetP99Ms, res.GetRatio.Median, 1e-6)
	require.NoError(t, res.print(&out, false))
}

// The median of an even number is between the two in the middle.
func TestSpread(t *testing.T) {
	require.Equal(t, spread{2, 1, 9}, spreadOf([]float64{9, 1, 2}))
	require.Equal(t, spread{2.5, 1, 9}, spreadOf([]float64{9, 3, 1, 2}))
}
