package dev

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// lostAt reads what a location has kept of an account's lost changes.
func lostAt(t *testing.T, c *Cluster, l geo.Location, account geo.Account) (claims []wire.LostClaim, changes []wire.LostChange) {
	t.Helper()
	q := wire.LostQuery{Account: account}
	for more := true; more; {
		page, err := adminClient(t, c).Lost(t.Context(), l, q)
		require.NoError(t, err)
		claims, changes = append(claims, page.Claims...), append(changes, page.Changes...)
		if more = page.More; more {
			q.After = page.Changes[len(page.Changes)-1].Key
		}
	}
	return claims, changes
}

// The former primary keeps each change that it had acknowledged and the present one does not have, and no other, before
// it is rewound: of the account only the rows that these changed are sent to it again (R22). What they held is in its
// lost-and-found.
//
// Capability: Failover: A former primary is rewound (R22).
// Capability: Failover: The lost-change report (R22).
func TestR22LostChangesAreKept(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	for _, k := range []string{"kept", "set", "deleted"} {
		put(t, c, "northacct", k, "before")
	}
	w := startWriter(t, c, "northacct")
	w.arrives()
	c.link.Cut()
	w.goesOn()
	put(t, c, "northacct", "set", "first")
	put(t, c, "northacct", "set", "last")
	put(t, c, "northacct", "new", "new")
	require.Equal(t, http.StatusNoContent, call(t, c.gateway, "northacct", http.MethodDelete, entityPath("northacct", "", "deleted"), "", "If-Match", "*").status)
	w.goesOn()
	w.stop()
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()
	promote(t, c, "northacct")
	there, now := w.value(""), c.locations[South].Directory
	taken, err := now.Account(t.Context(), "northacct")
	require.NoError(t, err)
	epoch := taken.GeoEpoch()
	putEventually(t, c, "northacct", "after")
	claims, changes := lostAt(t, c, South, "northacct")
	require.Empty(t, claims)
	require.Empty(t, changes)

	require.NoError(t, c.startLocation(t.Context(), North))
	eventually(t, "the north has kept what it alone has", func() bool {
		claims, changes = lostAt(t, c, North, "northacct")
		return len(claims) > 0
	})
	require.Len(t, claims, 1)
	require.Equal(t, geo.Table.String(), claims[0].Service)
	require.True(t, claims[0].Complete, claims[0].Reason)
	require.EqualValues(t, len(changes), claims[0].Changes)
	of := map[string]int{}
	for _, ch := range changes {
		of[ch.Object]++
		require.Equal(t, 1, ch.Rows+ch.Deleted)
		require.False(t, ch.Committed.IsZero())
		require.NotZero(t, ch.Bytes)
		if ch.Object == "deleted" {
			require.Equal(t, 1, ch.Deleted)
		}
	}
	written := of["w"]
	delete(of, "w")
	require.Equal(t, map[string]int{"set": 2, "new": 1, "deleted": 1}, of)
	acked := int(w.acked.Load() - there)
	require.GreaterOrEqual(t, written, acked, "every acknowledged change is in the report")
	require.LessOrEqual(t, written, acked+1, "one may have been under way")
	require.LessOrEqual(t, claims[0].Perhaps, uint64(2), "its groups name what it had answered")

	found := foundValues(t, c, North, "northacct")
	delete(found, "w")
	require.Equal(t, map[string]string{"set": "last", "new": "new"}, found)

	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	after, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, epoch, after.GeoEpoch(), "no copy was made again")
	for k, want := range map[string]string{"kept": "before", "set": "before", "deleted": "before", "k": "after"} {
		require.Equal(t, want, read(t, c, "northacct", "-secondary", k))
	}
	gone := call(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "new"), "")
	require.Equal(t, http.StatusNotFound, gone.status, gone.body)
	again, rest := lostAt(t, c, North, "northacct")
	require.Equal(t, claims, again, "what the copy is rewound to changes nothing of the report")
	require.Equal(t, changes, rest)
	out, err := adminClient(t, c).DropLost(t.Context(), North, wire.DropLost{Account: "northacct"})
	require.NoError(t, err)
	require.Equal(t, wire.LostDropped{Dropped: len(changes) + 1}, out)
	claims, changes = lostAt(t, c, North, "northacct")
	require.Empty(t, claims)
	require.Empty(t, changes)
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}

// A former primary has deleted a table, which the present one still has, and goes on writing to: it takes its rows again, under
// the same generation (R8, R22). That the generation takes no changes there was lost with the deletion.
//
// Capability: Failover: The lost-change report (R22).
func TestR22LostDeletionOfATable(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	put(t, c, "northacct", "kept", "v")
	drained(t, c)
	c.link.Cut()
	gone := call(t, c.gateway, "northacct", http.MethodDelete, "/northacct/Tables('tbl')", "")
	require.Equal(t, http.StatusNoContent, gone.status, gone.body)
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()
	promote(t, c, "northacct")
	taken, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	putEventually(t, c, "northacct", "after")
	require.NoError(t, c.startLocation(t.Context(), North))
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	now, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, taken.GeoEpoch(), now.GeoEpoch(), "no copy was made again")
	claims, changes := lostAt(t, c, North, "northacct")
	require.Len(t, claims, 4, "each range claims that these are all: %+v", claims)
	require.Len(t, changes, 1)
	require.Equal(t, geo.Catalog.String(), changes[0].Service)
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	require.Equal(t, "v", read(t, c, "northacct", "-secondary", "kept"))
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}
