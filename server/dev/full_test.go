package dev

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/server/location"
)

// R5: with next to nothing left on the disks of the secondary, or of the primary, both names answer reads, and the
// secondary its statistics, after a restart of that location too. The primary takes writes while the secondary is the
// full one. No alarm speaks of lost messages. With room again all that was written arrives.
func TestR5ReadsBesideFullDisks(t *testing.T) {
	t.Parallel()
	for _, full := range []geo.Location{South, North} {
		t.Run(string(full), func(t *testing.T) {
			t.Parallel()
			var left atomic.Uint64
			left.Store(1 << 40)
			c := startAdjusted(t, func(o *location.Options) {
				if o.Name == full {
					o.State.FS = filling{vfs.Default, &left}
				}
			})
			createTable(t, c, "northacct")
			put(t, c, "northacct", "k", "old")
			eventually(t, "it arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "old" })

			left.Store(60 << 20)
			for _, id := range runningStamp(c.locations[full]).Nodes() {
				eventually(t, "it is full", func() bool { return runningStamp(c.locations[full]).Node(id).Room().Full() })
			}
			require.NoError(t, c.servers[full].Stop())
			require.NoError(t, c.servers[full].Start(t.Context()))
			for _, target := range []string{
				entityPath("northacct", "", "k"), entityPath("northacct", "-secondary", "k"), "/northacct-secondary/?restype=service&comp=stats",
			} {
				eventually(t, target, func() bool {
					a, err := try(c.gateway, "northacct", http.MethodGet, target, "")
					return err == nil && a.status == http.StatusOK
				})
			}
			write := func() int {
				a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"new"}`)
				if err != nil {
					return 0
				}
				return a.status
			}
			if full == South {
				eventually(t, "the primary takes writes", func() bool { return write() == http.StatusNoContent })
			} else {
				require.Equal(t, http.StatusServiceUnavailable, write())
			}
			require.Equal(t, "old", read(t, c, "northacct", "-secondary", "k"))

			left.Store(1 << 40)
			eventually(t, "writes go on", func() bool { return write() == http.StatusNoContent })
			eventually(t, "it arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "new" })
			require.Zero(t, c.meters.Alarms.Counts(South)[natsbus.AlarmDamaged])
		})
	}
}
