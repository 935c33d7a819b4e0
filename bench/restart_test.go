package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A process that is killed with a tail as long as configured comes back, applies that
// again and serves; and one with default options is killed once its tail is as long as it
// gets.
func TestMeasureRestart(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{{"--bytes", "8MiB"}, {"--duration", "500ms"}} {
		var out strings.Builder
		o := options(t, append([]string{"--workload", workloadRestart, "--dir", t.TempDir(), "--json", "--concurrency", "4"}, more...)...)
		require.NoError(t, measureRestart(t.Context(), o, clock.System{}, &out))
		var res restarted
		require.NoError(t, json.Unmarshal([]byte(out.String()), &res))
		require.Equal(t, o.Bytes == 0, res.DefaultOptions)
		require.LessOrEqual(t, res.TailBytes, res.TailMaxBytes)
		require.Positive(t, res.OpenSeconds)
		require.Less(t, res.OpenSeconds, res.ServeSeconds)
		require.LessOrEqual(t, res.ServeSeconds, res.WholeSeconds)
		if o.Bytes > 0 {
			require.GreaterOrEqual(t, res.TailBytes, int64(o.Bytes))
			// What was under way when it was killed is not in every log.
			require.GreaterOrEqual(t, res.ReplayedBytes, (replicas-1)*int64(o.Bytes))
		}
		require.NoError(t, res.print(&out, false))
	}
}

// A child that ends by itself says why, and one that is killed is gone.
func TestChild(t *testing.T) {
	o := options(t, "--workload", workloadRestart, "--dir", t.TempDir())
	c, err := startChild("serve", o, "/proc/none")
	require.NoError(t, err)
	_, err = c.next(t.Context())
	require.ErrorContains(t, err, "open node north-1")
	require.NoError(t, c.kill())

	c, err = startChild(childServe, o, t.TempDir())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line, err := c.next(ctx)
	require.NoError(t, err)
	require.Equal(t, childOpen, line.Event)
	require.NoError(t, c.kill())
	require.NotNil(t, c.cmd.ProcessState)
}
