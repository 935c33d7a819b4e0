package dev

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/stats"
)

// R18: with the link cut and a small budget every write is answered as ever, and what the outbox holds stays
// near the budget. The account with the most falls out, which is an event at its primary at once, and what
// `why` names; another account waits and arrives once the link is healed. The copy that fell out stays readable as it
// was, also after a restart of its primary; its statistics are unavailable with an empty time, and operators see the
// last one.
//
// Capability: Two locations: The outbox has a budget.
func TestR18OutboxBudget(t *testing.T) {
	t.Parallel()
	const budget = 200_000
	c := startAdjusted(t, func(o *location.Options) { o.Outbox.Bytes = budget })
	createTable(t, c, "northacct")
	createTable(t, c, "southacct")
	put(t, c, "northacct", "k", "old")
	eventually(t, "the old value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "old" })
	drained(t, c)
	c.link.Cut()
	put(t, c, "southacct", "k", "of south")

	large := strings.Repeat("x", 4000)
	fell := func() []string { return accountEvents(c, North, "northacct", geo.Table) }
	holds := func() int64 {
		b, err := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Backlog()
		require.NoError(t, err)
		return b.Size()
	}
	begin := time.Now()
	written := 0
	for ; len(fell()) == 0; written++ {
		require.Less(t, time.Since(begin), time.Minute, "%d bytes in the outbox", holds())
		put(t, c, "northacct", fmt.Sprint(written%50), large)
	}
	require.Greater(t, written*len(large), budget/2)
	for i := range 100 {
		put(t, c, "northacct", fmt.Sprint(i%50), large)
	}
	eventually(t, "what was written since is deleted", func() bool { return holds() == 0 })
	require.Equal(t, []string{"fell-out the outbox passed its budget: southcentralus stays as it is and gets no more changes; " +
		"antipodectl account rebuild northacct"}, fell())
	require.Empty(t, accountEvents(c, North, "northacct", geo.Blob))
	require.Empty(t, accountEvents(c, South, "southacct", geo.Table))
	require.EqualValues(t, 1, gather(t, c)[`antipode_outbox_fell_out_accounts{location="northcentralus",service="table"}`])
	require.EqualValues(t, budget, gather(t, c)[`antipode_outbox_budget_bytes{location="northcentralus",node="2"}`])
	require.Equal(t, "old", read(t, c, "northacct", "-secondary", "k"))

	require.NoError(t, c.servers[North].Stop())
	require.NoError(t, c.servers[North].Start(t.Context()))
	c.link.Heal()
	eventually(t, "the secondary knows it", func() bool { return tableStats(c, South, "northacct").Reason == stats.BehindOutbox })
	got := tableStats(c, South, "northacct")
	require.Equal(t, stats.Unavailable, got.Status)
	require.True(t, got.Kept.Time().Before(begin), "%s", got.Kept.Time())
	require.Positive(t, got.Kept)
	require.Equal(t, "old", read(t, c, "northacct", "-secondary", "k"))
	require.Empty(t, read(t, c, "northacct", "-secondary", "7"))
	a := call(t, c.gateway, "northacct", http.MethodGet, "/northacct-secondary/?restype=service&comp=stats", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, "<Status>unavailable</Status><LastSyncTime></LastSyncTime>")
	eventually(t, "the other account arrives", func() bool { return read(t, c, "southacct", "-secondary", "k") == "of south" })
	put(t, c, "northacct", "k", "new")
	require.Equal(t, "new", read(t, c, "northacct", "", "k"))
	healed := time.Now()
	eventually(t, "other services are live", func() bool {
		acct, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		if err != nil {
			return false
		}
		now := looked(c, South, acct, geo.Blob)
		return now.Status == stats.Live && now.LastSync.Time().After(healed)
	})
	kept := tableStats(c, South, "northacct").Kept // Of the catalog, too, which may have come after the reason.
	require.GreaterOrEqual(t, kept, got.Kept)
	require.True(t, kept.Time().Before(begin), "%s", kept.Time())
	for i := range 50 { // An image of 200 KB could pass this budget by itself: see docs/limits.md.
		put(t, c, "northacct", fmt.Sprint(i), "small")
	}
	require.Equal(t, kept, tableStats(c, South, "northacct").Kept, "it stands, whatever follows")
	write := func() int {
		return once(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"new"}`).status
	}
	_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{WhenLate: "refuse"})
	require.NoError(t, err)
	eventually(t, "an account that fell out is late", func() bool { return write() == http.StatusServiceUnavailable })
	requireRebuilt(t, c, "northacct")
	eventually(t, "it is late no more", func() bool { return write() == http.StatusNoContent })
	require.Equal(t, "new", read(t, c, "northacct", "-secondary", "k"))
}
