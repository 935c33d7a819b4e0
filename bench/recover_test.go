package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A node whose folder is lost comes back with all that was loaded, which passed the connections
// between the nodes. The run shows when each range had it in sync.
func TestMeasureRecovery(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := options(t, "--workload", workloadRecover, "--bytes", "32MiB", "--dir", t.TempDir(), "--json")
	require.NoError(t, measureRecovery(t.Context(), o, clock.System{}, &out))
	var res recovered
	require.NoError(t, json.Unmarshal([]byte(out.String()), &res))
	require.EqualValues(t, 16<<20, res.BlobBytes)
	require.InDelta(t, 16<<20, res.RowBytes, 100<<10)
	require.Equal(t, res.BlobBytes, res.PayloadBytes)
	require.Greater(t, res.WireBytes, res.Bytes)
	require.Len(t, res.RangeSeconds, 4)
	for service, seconds := range res.RangeSeconds {
		require.Positive(t, seconds, service)
		require.LessOrEqual(t, seconds, res.Seconds, service)
	}
	require.NoError(t, res.print(&out, false))
	require.Contains(t, out.String(), "payload 16MiB")
}
