package metrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// crowd are n accounts whose Last Sync Time of tables is second 1000.
func crowd(n int) (w world) {
	for i := range n {
		s := SyncSample{south, geo.Account(fmt.Sprintf("acct%03d", i)), geo.Table, 1000 * geo.TicksPerSecond}
		w.accounts.SyncTimes, w.accounts.LastSyncTimes = append(w.accounts.SyncTimes, s), append(w.accounts.LastSyncTimes, s)
	}
	return w
}

func shownBy(t *testing.T, w *world, most int) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	require.NoError(t, RegisterGauges(reg, w, most))
	return text(t, reg)
}

func lastSync(account geo.Account, seconds string) string {
	return fmt.Sprintf("antipode_last_sync_timestamp_seconds{account=%q,location=\"southcentralus\",service=\"table\"} %s\n", account, seconds)
}

// Past the bound the accounts that are worst off are shown by their names: without a Last Sync Time, in bootstrap,
// then by lag. All others share one series each, with the oldest time, the number of those that lack one, and sums.
//
// Capability: Operation in Prometheus: No label grows with the accounts.
func TestAccountsAreBounded(t *testing.T) {
	w := crowd(30)
	w.accounts.LastSyncTimes[17].Time -= 40 * geo.TicksPerSecond
	w.accounts.LastSyncTimes[5].Time -= 9 * geo.TicksPerSecond // Less than a step: counts as all others.
	w.accounts.LastSyncTimes[29].Time = 0
	w.accounts.Unavailable = []UnavailableSample{{south, "acct029", geo.Table, "forked"}}
	w.accounts.Copies = []CopySample{{Location: north, Account: "acct028", Rows: 7}}

	out := shownBy(t, &w, 3)
	require.Contains(t, out, lastSync("acct017", "960"))
	require.Contains(t, out, lastSync(Other, "991"), "the oldest of all others")
	require.Contains(t, out, `antipode_replication_unavailable{account="acct029",location="southcentralus",reason="forked",service="table"} 1`)
	require.Contains(t, out, `antipode_bootstrap_copied_rows{account="acct028",location="northcentralus"} 7`)
	require.NotContains(t, out, "acct005")
	require.NotContains(t, out, "acct000")
	require.Contains(t, out, `antipode_sync_timestamp_seconds{account="(other)",location="southcentralus",service="table"} 1000`)
}

// Accounts of which only sync times are known count for the bound, too.
//
// Capability: Operation in Prometheus: No label grows with the accounts.
func TestAccountsWithSyncTimesAreBounded(t *testing.T) {
	w := crowd(30)
	w.accounts.LastSyncTimes = nil
	out := shownBy(t, &w, 3)
	require.Contains(t, out, `antipode_sync_timestamp_seconds{account="acct002",location="southcentralus",service="table"} 1000`)
	require.NotContains(t, out, "acct003")
}

// With a bound that is not passed there is no series of others; with -1 there is nothing else.
//
// Capability: Operation in Prometheus: No label grows with the accounts.
func TestAccountsWithinTheBound(t *testing.T) {
	w := crowd(30)
	require.NotContains(t, shownBy(t, &w, 30), Other)
	out := shownBy(t, &w, NoAccounts)
	require.Contains(t, out, lastSync(Other, "1000"))
	require.NotContains(t, out, "acct")
	w = crowd(AccountsDefault + 1)
	out = shownBy(t, &w, 0)
	require.Contains(t, out, fmt.Sprintf("acct%03d", AccountsDefault-1))
	require.NotContains(t, out, fmt.Sprintf("acct%03d", AccountsDefault))
}

// While all are well the same accounts are shown, whichever is some seconds behind: each new one would be a new series.
func TestShownAccountsStay(t *testing.T) {
	w := crowd(30)
	for i := range 30 {
		before := w.accounts.LastSyncTimes[i].Time
		w.accounts.LastSyncTimes[i].Time -= 9 * geo.TicksPerSecond
		out := shownBy(t, &w, 2)
		require.Contains(t, out, `account="acct000"`)
		require.Contains(t, out, `account="acct001"`)
		require.NotContains(t, out, `account="acct002"`)
		w.accounts.LastSyncTimes[i].Time = before
	}
}

// Those without a name are counted: two that lack a Last Sync Time for one reason are 2, and two bootstraps one sum.
// A value that is unknown for one of them is not shown for all.
func TestOthersAreAdded(t *testing.T) {
	w := crowd(2)
	w.accounts.Unavailable = []UnavailableSample{{south, "acct000", geo.Table, "forked"}, {south, "acct001", geo.Table, "forked"}}
	total, speed := uint64(100), 5.
	w.accounts.Copies = []CopySample{
		{Location: north, Account: "acct000", Rows: 7, TotalRows: &total, TotalBytes: &total, BytesPerSecond: &speed, SecondsLeft: &speed},
		{Location: north, Account: "acct001", Rows: 5, BytesPerSecond: &speed, SecondsLeft: &speed},
	}
	out := shownBy(t, &w, NoAccounts)
	require.Contains(t, out, `antipode_replication_unavailable{account="(other)",location="southcentralus",reason="forked",service="table"} 2`)
	require.Contains(t, out, `antipode_bootstrap_copied_rows{account="(other)",location="northcentralus"} 12`)
	require.Contains(t, out, `antipode_bootstrap_bytes_per_second{account="(other)",location="northcentralus"} 10`)
	require.Contains(t, out, `antipode_bootstrap_left_seconds{account="(other)",location="northcentralus"} 5`)
	require.NotContains(t, out, "antipode_bootstrap_counted_rows{")
}

// No account can have the name of all others.
func TestOtherIsNoAccount(t *testing.T) {
	require.False(t, geo.Account(Other).Valid())
}
