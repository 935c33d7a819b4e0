package dev

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// fill stores rows and blobs of an account, large ones too.
func fill(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	createTable(t, c, account)
	for i := range 60 {
		put(t, c, account, fmt.Sprintf("k%d", i), "before")
	}
	b := blobClient(t, c, string(account))
	_, err := b.CreateContainer(t.Context(), "photos", nil)
	require.NoError(t, err)
	for i, size := range []int{10, 5000, 70_000, 5 << 20} {
		_, err = b.UploadBuffer(t.Context(), "photos", fmt.Sprint("photo", i), bytes.Repeat([]byte{byte(i)}, size), nil)
		require.NoError(t, err)
	}
}

// requireCopied waits until the account's copy is complete, and compares it.
func requireCopied(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	eventually(t, "the bootstrap ends", func() bool {
		for _, l := range []geo.Location{North, South} {
			if a, err := c.locations[l].Directory.Account(t.Context(), account); err != nil || a.Operation != nil {
				return false
			}
		}
		return true
	})
	_, err := c.WaitLive(t.Context(), account)
	require.NoError(t, err)
	require.Empty(t, verifiedWhole(t, c, account, wire.VerifyQuery{}).Differences)
}

// requireRebuilt has an account's copy made again, whatever it has alone, and waits for it.
func requireRebuilt(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	_, err := adminClient(t, c).UpdateAccount(t.Context(), account, wire.UpdateAccount{Rebuild: true, Force: account})
	require.NoError(t, err)
	requireCopied(t, c, account)
}

// An LRS account with tables and blobs becomes RA-GRS while writes go on, with all processes restarted in the middle:
// no write fails for longer than the restart, -secondary refuses data with 503 and shows `bootstrap` without a time, and
// then the copy is complete and equal. Back to LRS, the copy is deleted; to GRS, it is made again.
func TestR17Bootstrap(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createAs(t, c, "alone", North, "LRS")
	fill(t, c, "alone")
	w := startWriter(t, c, "alone")
	c.link.Cut()
	a := updateTo(t, c, "alone", "RA-GRS")
	require.Contains(t, a.Operation, "bootstrap")
	require.NotEmpty(t, a.Behind)
	w.goesOn()
	_, err := adminClient(t, c).UpdateAccount(t.Context(), "alone", wire.UpdateAccount{Redundancy: "GRS"})
	require.ErrorContains(t, err, "the first copy of its data (bootstrap): the other location is not ready for it yet")
	_, err = adminClient(t, c).StartVerify(t.Context(), "alone", wire.VerifyQuery{})
	require.ErrorContains(t, err, "not compared before its copy is complete")
	c.link.Heal()
	eventually(t, "the copy begins", func() bool {
		a, err := c.locations[South].Directory.Account(t.Context(), "alone")
		return err == nil && a.Copying()
	})
	for _, l := range []geo.Location{North, South} {
		require.NoError(t, c.servers[l].Stop())
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	w.goesOn()
	requireCopied(t, c, "alone")
	require.Equal(t, "before", read(t, c, "alone", "-secondary", "k7"))
	w.arrives()
	w.stop()
	first, err := c.locations[North].Directory.Account(t.Context(), "alone")
	require.NoError(t, err)

	followed(t, c, "alone", "LRS")
	put(t, c, "alone", "k7", "while alone")
	require.Equal(t, "GRS", updateTo(t, c, "alone", "GRS").Redundancy)
	requireCopied(t, c, "alone")
	again, err := c.locations[South].Directory.Account(t.Context(), "alone")
	require.NoError(t, err)
	require.Equal(t, first.Epoch+2, again.Epoch)
	requireUnread(t, c, "alone")
}

// The copy of an account is made again from nothing, while writes go on: rows that the secondary has and the primary
// has not are gone, and what the primary has is there (R17). An account without a copy has none to make again.
func TestR17Rebuild(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	fill(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	rebuilt, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true})
	require.NoError(t, err)
	require.EqualValues(t, 2, rebuilt.Epoch.Number)
	requireCopied(t, c, "northacct")
	w.arrives()
	w.stop()
	a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Epoch)
	require.Equal(t, catalog.RAGRS, a.Redundancy)
	got := call(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k3"), "")
	require.Equal(t, http.StatusOK, got.status)

	createAs(t, c, "alone", North, "LRS")
	for name, says := range map[geo.Account]string{"alone": "it has no copy", "nobody": "no such account"} {
		_, err = adminClient(t, c).UpdateAccount(t.Context(), name, wire.UpdateAccount{Rebuild: true})
		require.ErrorContains(t, err, says)
	}
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "alone", wire.UpdateAccount{Rebuild: true, Redundancy: "GRS"})
	require.ErrorContains(t, err, "give one of the two")
	_, _, err = c.locations[South].Directory.Rebuild(t.Context(), "northacct", nil)
	require.ErrorContains(t, err, "the primary of account northacct is northcentralus")
}

// The secondary loses its whole folder and starts empty: it does not know the account. What the primary has is copied to
// it by one command, while clients write, and Last Sync Time is absent until the copy is complete (R17). Accounts whose
// primary is the other location read and write as before.
func TestR17SecondaryIsLost(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	fill(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	require.NoError(t, c.servers[South].Stop())
	require.NoError(t, os.RemoveAll(filepath.Join(c.o.Dir, string(South))))
	w.goesOn()
	require.NoError(t, c.servers[South].Start(t.Context()))
	eventually(t, "the south serves", func() bool { return c.locations[South].Readiness(t.Context()).Serving })
	_, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	w.goesOn()
	requireRebuilt(t, c, "northacct")
	w.arrives()
	w.stop()
	require.Equal(t, "before", read(t, c, "northacct", "-secondary", "k7"))
}

// A copy with a rate shows what it has copied, of how much, its rate and a time left, in the account, in the status and
// in the metrics, and goes on at that rate after a restart of both locations (R17). Without the rate it ends, and shows
// nothing any more.
func TestR17CopyShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createAs(t, c, "alone", North, "LRS")
	fill(t, c, "alone")
	// One of these, the first in their order, is copied each 2 s: it grows steadily for two minutes.
	for i := range 60 {
		put(t, c, "alone", fmt.Sprint("a", i), strings.Repeat("x", 8000))
	}
	slow, fast := uint64(4000), uint64(0)
	begun, err := adminClient(t, c).UpdateAccount(t.Context(), "alone", wire.UpdateAccount{Redundancy: "GRS", BytesPerSecond: &slow})
	require.NoError(t, err)
	require.Contains(t, begun.Operation, "bootstrap")
	shown := func() *wire.Copied {
		a, err := adminClient(t, c).Account(t.Context(), "alone")
		require.NoError(t, err)
		return a.Copied
	}
	requireOnTheWay := func() {
		t.Helper()
		eventually(t, "there are a rate and a time left", func() bool { s := shown(); return s != nil && s.SecondsLeft != nil && s.Rows > 0 })
		s := shown()
		require.Greater(t, s.Total.Rows, uint64(120))
		require.Greater(t, s.Total.PayloadBytes, uint64(5<<20))
		require.Less(t, s.Rows, s.Total.Rows)
		require.Less(t, *s.Percent, 50.)
		require.Positive(t, *s.BytesPerSecond)
		require.Equal(t, slow, s.BytesPerSecondMax)
	}
	requireOnTheWay()
	status, err := adminClient(t, c).Status(t.Context())
	require.NoError(t, err)
	for _, a := range status.Accounts {
		require.Equal(t, a.Name == "alone", a.Copied != nil, a.Name)
	}
	of := `{account="alone",location="northcentralus"}`
	got := gather(t, c)
	require.InDelta(t, float64(shown().Total.Rows), got["antipode_bootstrap_counted_rows"+of], 0)
	require.Positive(t, got["antipode_bootstrap_copied_bytes"+of])
	require.Contains(t, got, "antipode_bootstrap_waiting_bytes"+of)

	before := shown().Rows
	for _, l := range []geo.Location{North, South} {
		require.NoError(t, c.servers[l].Stop())
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	eventually(t, "the copy is known again", func() bool { return shown() != nil })
	require.GreaterOrEqual(t, shown().Rows, before, "it does not begin again")
	requireOnTheWay()
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "alone", wire.UpdateAccount{BytesPerSecond: &fast})
	require.NoError(t, err)
	requireCopied(t, c, "alone")
	require.Nil(t, shown())
	require.NotContains(t, gather(t, c), "antipode_bootstrap_copied_bytes"+of)
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "alone", wire.UpdateAccount{BytesPerSecond: &slow})
	require.ErrorContains(t, err, "no copy of account alone is made")
}
