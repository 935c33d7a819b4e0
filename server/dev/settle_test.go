package dev

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/server/location"
	"antipode/stamp/change"
	"antipode/stats"
)

// sourceForks returns the entries of a table's forks at the source, once both ends keep each.
func sourceForks(t *testing.T, c *Cluster, account geo.Account) (out []wire.Fork) {
	t.Helper()
	eventually(t, "both ends keep the stop", func() bool {
		all, err := adminClient(t, c).Forks(t.Context())
		receivers := 0
		out = slices.DeleteFunc(all.Forks, func(f wire.Fork) bool {
			if f.Account == account && f.Side == wire.SideReceiver {
				receivers++
			}
			return f.Account != account || f.Side != wire.SideSource
		})
		return err == nil && len(out) > 0 && len(out) == receivers
	})
	return out
}

// resolve settles the forks of an account, and waits until its copy is live.
func resolve(t *testing.T, c *Cluster, account geo.Account, keep geo.Location) {
	t.Helper()
	for _, f := range sourceForks(t, c, account) {
		q := wire.ResolveFork{StreamName: f.Name(), Keep: keep}
		r, err := adminClient(t, c).Resolve(t.Context(), f.Location, q)
		require.NoError(t, err)
		again, err := adminClient(t, c).Resolve(t.Context(), f.Location, q)
		if err == nil { // The settlement may have ended.
			require.Equal(t, r, again)
		}
	}
	requireSettled(t, c, account)
}

// requireSettled waits until no stream is stopped, the copy is live, and equal.
func requireSettled(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	eventually(t, "the forks are settled", func() bool {
		all, err := adminClient(t, c).Forks(t.Context())
		return err == nil && len(all.Forks) == 0 && len(all.Silent) == 0
	})
	eventually(t, "the copy is live", func() bool { return tableStats(c, South, account).Status == stats.Live })
	require.Empty(t, verifiedWhole(t, c, account, wire.VerifyQuery{}).Differences)
}

// foundValues returns the values that the lost-and-found of a location has of an account's entities, by partition key.
func foundValues(t *testing.T, c *Cluster, l geo.Location, account geo.Account) map[string]string {
	t.Helper()
	out := map[string]string{}
	q := wire.FoundQuery{Account: account, Values: true}
	for more := true; more; {
		page, err := adminClient(t, c).Found(t.Context(), l, q)
		require.NoError(t, err)
		for _, r := range page.Rows {
			var e struct{ PartitionKey, V string }
			require.NoError(t, json.Unmarshal(r.Entity, &e))
			require.Equal(t, r.Object, e.PartitionKey)
			out[e.PartitionKey], q.After = e.V, r.Key
		}
		more = page.More
	}
	return out
}

// forked forges a record of key k on its way, and waits for the fork. It writes k again afterwards, and rows of
// other lanes.
func forked(t *testing.T) *Cluster {
	t.Helper()
	var armed atomic.Bool
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == North {
			o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return forger{p, &armed} }
		}
	})
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "before" })
	armed.Store(true)
	put(t, c, "northacct", "k", "right")
	eventually(t, "the forged value arrives", func() bool {
		v := read(t, c, "northacct", "-secondary", "k")
		return strings.HasPrefix(v, "righ") && v != "right"
	})
	eventually(t, "the stream is stopped", func() bool { return tableStats(c, South, "northacct").Status == stats.Unavailable })
	for _, k := range []string{"a", "b", "c"} {
		put(t, c, "northacct", k, k)
	}
	return c
}

// R16: a fork is resolved for the primary's side without a new copy of the account: the copy is live, equal and
// goes on, what the secondary had instead is in its lost-and-found, until it is dropped.
func TestR16ForkIsResolvedForThePrimary(t *testing.T) {
	t.Parallel()
	c := forked(t)
	wrong := read(t, c, "northacct", "-secondary", "k")
	f := sourceForks(t, c, "northacct")[0]
	_, err := adminClient(t, c).Resolve(t.Context(), South, wire.ResolveFork{StreamName: f.Name(), Keep: South})
	require.ErrorContains(t, err, "the primary of the account resolves its forks: "+string(North))
	catalog := f.Name()
	catalog.Range = geo.FirstRange(geo.Catalog)
	_, err = adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: catalog, Keep: North})
	require.ErrorContains(t, err, "account rebuild")
	c.link.Cut()
	_, err = adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: f.Name(), Keep: North})
	require.ErrorContains(t, err, "does not answer")
	c.link.Heal()
	before, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)

	resolve(t, c, "northacct", North)
	require.Equal(t, "right", read(t, c, "northacct", "-secondary", "k"))
	require.Equal(t, map[string]string{"k": wrong}, foundValues(t, c, South, "northacct"))
	require.Empty(t, foundValues(t, c, North, "northacct"))
	after, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, before.GeoEpoch(), after.GeoEpoch(), "no copy of the account was made")
	put(t, c, "northacct", "k", "later")
	eventually(t, "the stream goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "later" })
	require.Len(t, foundValues(t, c, South, "northacct"), 1, "nothing more is kept")

	page, err := adminClient(t, c).Found(t.Context(), South, wire.FoundQuery{})
	require.NoError(t, err)
	dropped, err := adminClient(t, c).DropFound(t.Context(), South, wire.DropFound{Keys: []string{page.Rows[0].Key}})
	require.NoError(t, err)
	require.Equal(t, 1, dropped.Dropped)
	require.Empty(t, foundValues(t, c, South, "northacct"))
}

// R16: a settlement that has begun goes on after all processes were stopped at once, with nobody's help.
//
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestR16SettlementGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	c := forked(t)
	for _, f := range sourceForks(t, c, "northacct") {
		_, err := adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: f.Name(), Keep: North})
		require.NoError(t, err)
	}
	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Stop())
	}
	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	requireSettled(t, c, "northacct")
	require.Equal(t, "right", read(t, c, "northacct", "-secondary", "k"))
	require.Len(t, foundValues(t, c, South, "northacct"), 1)
}

// R4 and R16: a write that the primary lost in a recovery, and that only the secondary has, is in the secondary's
// lost-and-found after the primary's side was kept. Another account is not touched.
func TestR16LossOfThePrimaryIsResolved(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	drained(t, c)
	left := follower(c, North)
	require.NoError(t, c.stopNode(t.Context(), North, left))
	putEventually(t, c, "northacct", "lost")
	eventually(t, "it is at the secondary", func() bool { return read(t, c, "northacct", "-secondary", "k") == "lost" })
	recoverOf(t, c, North, left)
	putEventually(t, c, "northacct", "after")
	eventually(t, "the stream is stopped", func() bool { return tableStats(c, South, "northacct").Reason == stats.Forked })
	resolve(t, c, "northacct", North)
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	require.Equal(t, map[string]string{"k": "lost"}, foundValues(t, c, South, "northacct"))
	eventually(t, "the account of the other direction is live", func() bool {
		return tableStats(c, North, "southacct").Status == stats.Live
	})
}

// R16: no stream of the catalog is settled. For one that is forked a failover keeps most; where the secondary lost what it had
// acknowledged that would lose it for clients too, and is not named.
func TestR16CatalogIsNotSettled(t *testing.T) {
	t.Parallel()
	c, st, _ := oneStream(t)
	st.Range, st.Lane = geo.FirstRange(geo.Catalog), 0
	refusal := func(why change.StopReason) string {
		require.NoError(t, c.locations[South].Submit(t.Context(), st.Range, stopByHand{st, change.Stop{Reason: why}}))
		name := wire.StreamName{Account: st.Account, Epoch: wire.EpochOf(st.Epoch), Range: st.Range, Lane: st.Lane}
		_, err := adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: name, Keep: North})
		var refused *wire.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, wire.CodeStopKept, refused.Code)
		return refused.Message
	}
	require.Contains(t, refusal(change.StopForked), "antipodectl failover unplanned")
	lost := refusal(change.StopLost)
	require.Contains(t, lost, "antipodectl account rebuild northacct makes its copy again")
	require.NotContains(t, lost, "failover")
}
