package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/flow"
	"antipode/services/catalog"
	"antipode/stamp/cursor"
	"antipode/stats"
)

// R4, R17: a copy of which a range was recovered with a loss, to before it was whole, has no Last Sync Time before all has
// arrived again that it was made of. One of which no range was keeps its time, and so does one that a failover has made.
//
// Capability: Proofs: A copy of which a recovery with loss left a part (R4, R17).
func TestR4CopyIsRegained(t *testing.T) {
	copied := &catalog.Account{Name: "acct", Copied: 100}
	lost, kept := []cursor.Progress{{}, {Recovered: true}}, []cursor.Progress{{}, {}}
	live := func(at geo.Timestamp) stats.Replication { return stats.Replication{Status: stats.Live, LastSync: at} }
	require.Equal(t, stats.UnavailableFor(stats.Bootstrapping), flow.Regained(copied, live(99), lost))
	require.Equal(t, live(100), flow.Regained(copied, live(100), lost))
	require.Equal(t, live(99), flow.Regained(copied, live(99), kept))
	require.Equal(t, live(99), flow.Regained(&catalog.Account{Name: "acct"}, live(99), lost), "no copy was made")
	require.Equal(t, live(101), flow.Regained(copied, live(99).From(101, 0, time.Unix(0, 0)), lost), "it was the primary since")
	stopped := stats.UnavailableFor(stats.NotHeard)
	require.Equal(t, stopped, flow.Regained(copied, stopped, lost))
}
