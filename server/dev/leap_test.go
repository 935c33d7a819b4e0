package dev

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
	"antipode/stats"
)

// R6: all clocks of the primary leap ahead by twenty years. It takes no write and says so, reads go on, and once they are right
// writes do. The secondary has everything, with its Last Sync Time: nothing was stamped in the future.
//
// Capability: Two locations: All clocks of a location leap, by seconds to decades (R6).
func TestR6SiteThatLeaps(t *testing.T) {
	t.Parallel()
	const by = 20 * 365 * 24 * time.Hour
	behind := map[geo.Location]*atomic.Int64{North: {}, South: {}}
	c := startAdjusted(t, func(o *location.Options) { o.Clock = lateClock{o.Clock, behind[o.Name]} })
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	drained(t, c)

	behind[North].Store(-int64(by))
	status := func() string {
		s, err := c.admin.Status(t.Context())
		require.NoError(t, err)
		var off []string
		for _, l := range s.Locations {
			for _, n := range l.Nodes {
				if n.ClockOff != "" {
					off = append(off, n.Name+": "+n.ClockOff)
				}
			}
		}
		return strings.Join(off, "\n")
	}
	eventually(t, "each node of the primary is named", func() bool {
		return strings.Count(status(), "its clock leapt ahead by 175200h0m0s") == nodesPerLocation && !strings.Contains(status(), string(South))
	})
	a := once(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"in 2046"}`)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "before", read(t, c, "northacct", "", "k"))
	createTable(t, c, "southacct")
	put(t, c, "southacct", "k", "of the other location")

	behind[North].Store(0)
	eventually(t, "writes go on", func() bool {
		return once(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"after"}`).status == http.StatusNoContent
	})
	drained(t, c)
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	r := tableStats(c, South, "northacct")
	require.Equal(t, stats.Live, r.Status)
	require.Less(t, time.Until(r.LastSync.Time()), time.Second)
	eventually(t, "no node is named", func() bool { return status() == "" })
}
