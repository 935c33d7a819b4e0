package node_test

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
)

// Every node has its series beside one registry, takes them back when it stops, and can
// be opened again.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.Registerer = reg })
		count := func() int {
			n, err := testutil.GatherAndCount(reg, "antipode_scrub_bytes_total", "antipode_disk_full", "antipode_extent_freed_bytes_total")
			require.NoError(t, err)
			return n
		}
		require.Equal(t, 3*5, count())
		problems, err := testutil.GatherAndLint(reg)
		require.NoError(t, err)
		require.Empty(t, problems)
		id := s.follower()
		require.NoError(t, s.Stop(id, true))
		require.Equal(t, 2*5, count())
		s.start(id)
		require.Equal(t, 3*5, count())
	})
}
