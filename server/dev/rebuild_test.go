package dev

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/server/location"
	"antipode/services/catalog"
)

// alone counts what only the south's copy of an account has.
func alone(t *testing.T, c *Cluster, account geo.Account) wire.CopyAlone {
	t.Helper()
	out, err := adminClient(t, c).CopyAlone(t.Context(), South, wire.AloneQuery{Account: account})
	require.NoError(t, err)
	require.False(t, out.AtLeast, out.Reason)
	return out
}

// R17: a rebuild is refused while the secondary is ahead, through the admin port, and names what keeps most. Forced, what
// only the copy has is counted before, and is in the lost-and-found of the secondary before it is deleted; rows that both
// have are not.
func TestR17RebuildKeepsWhatOnlyTheCopyHas(t *testing.T) {
	t.Parallel()
	c := forked(t)
	admin := adminClient(t, c)
	sourceForks(t, c, "northacct")
	found := alone(t, c, "northacct")
	require.EqualValues(t, 1, found.Rows)
	require.NotZero(t, found.Bytes)
	require.Positive(t, found.Streams)
	require.False(t, found.Newest.IsZero())
	for _, dry := range []bool{true, false} {
		_, err := admin.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, DryRun: dry})
		require.ErrorContains(t, err, "fork resolve northacct --keep "+string(South))
		require.ErrorContains(t, err, "account rebuild northacct --force northacct")
	}
	_, err := admin.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, Force: "southacct"})
	require.ErrorContains(t, err, "force names the account")
	_, err = admin.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Redundancy: "LRS", Force: "northacct"})
	require.ErrorContains(t, err, "of a rebuild")
	forged := read(t, c, "northacct", "-secondary", "k")
	require.NotEqual(t, "right", forged)
	_, err = admin.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, Force: "northacct"})
	require.NoError(t, err)
	requireCopied(t, c, "northacct")
	require.Equal(t, "right", read(t, c, "northacct", "-secondary", "k"))
	require.Equal(t, map[string]string{"k": forged}, foundValues(t, c, South, "northacct"))
	require.Zero(t, alone(t, c, "northacct").Rows)
}

// R17: a change to LRS deletes the copy too, and keeps what only that has.
func TestR17LeavingKeepsWhatOnlyTheCopyHas(t *testing.T) {
	t.Parallel()
	c := forked(t)
	sourceForks(t, c, "northacct")
	forged := read(t, c, "northacct", "-secondary", "k")
	followed(t, c, "northacct", "LRS")
	require.Equal(t, map[string]string{"k": forged}, foundValues(t, c, South, "northacct"))
}

// R17: the copy of a healthy account is made again without a word of force, while clients write, and nothing of it is kept: it
// has nothing that the primary has not had.
func TestR17RebuildOfAHealthyCopyKeepsNothing(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	fill(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	require.Zero(t, alone(t, c, "northacct").Rows)
	requireRebuilt(t, c, "northacct")
	w.arrives()
	w.stop()
	page, err := adminClient(t, c).Found(t.Context(), South, wire.FoundQuery{Account: "northacct"})
	require.NoError(t, err)
	require.Empty(t, page.Rows)
}

// R17: while the secondary does not answer, a rebuild is refused: whether its copy has what the primary lacks is not known.
// Forced, it begins, and goes on once the secondary is back.
func TestR17RebuildAsksTheSecondary(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	fill(t, c, "northacct")
	c.link.Cut()
	for _, dry := range []bool{true, false} {
		_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, DryRun: dry})
		var refused *wire.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, wire.CodeOtherAway, refused.Code)
		require.Contains(t, refused.Message, "does not answer")
		require.Contains(t, refused.Message, "account rebuild northacct --force northacct")
	}
	a, err := adminClient(t, c).Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Empty(t, a.Operation, "nothing was changed")
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, Force: "northacct"})
	require.NoError(t, err)
	c.link.Heal()
	requireCopied(t, c, "northacct")
}

// R17: the primary was recovered with loss, its catalog too, and the secondary alone has containers, with what is in them. A
// rebuild names the failover that keeps all of it. Forced, the containers and all of their rows are in the lost-and-found of
// the secondary, with the payload of blobs.
func TestR17ForkOfTheCatalogIsKept(t *testing.T) {
	for name, lost := range map[string][]geo.Service{
		"all ranges lost something": {geo.Catalog, geo.Table, geo.Blob, geo.Queue},
		"the catalog alone did":     {geo.Catalog},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testForkOfTheCatalog(t, lost)
		})
	}
}

func testForkOfTheCatalog(t *testing.T, lost []geo.Service) {
	c := startAdjusted(t, func(o *location.Options) {
		o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return p }
	})
	k := newContainers(t, c)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "both")
	k.create("both")
	k.upload("both", "blob", "both")
	drained(t, c)
	drainedRange(t, c, geo.Blob)
	drainedRange(t, c, geo.Catalog)

	left := follower(c, North)
	require.NoError(t, c.stopNode(t.Context(), North, left))
	eventually(t, "a container that the stopped node misses is made", func() bool {
		_, err := k.b.CreateContainer(t.Context(), "only", nil)
		return err == nil
	})
	big := string(make([]byte, 100<<10))
	k.upload("only", "blob", big)
	eventually(t, "it is at the secondary", func() bool { return k.of(South, "only") != nil && k.read("only", "blob") == big })
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.stopNode(t.Context(), North, id))
		}
	}
	require.NoError(t, c.startNode(t.Context(), North, left))
	for _, s := range lost {
		eventually(t, "the range is re-formed", func() bool {
			_, err := c.recoverRange(t.Context(), North, geo.FirstRange(s), lossAccepted)
			return err == nil
		})
	}
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.startNode(t.Context(), North, id))
		}
	}
	eventually(t, "the primary has lost the container, and a fork of the catalog is found", func() bool {
		all, err := adminClient(t, c).Forks(t.Context())
		if err != nil || k.of(North, "only") != nil {
			return false
		}
		for _, f := range all.Forks {
			if f.Service == geo.Catalog.String() && f.Side == wire.SideReceiver && f.Reason == "forked" {
				return true
			}
		}
		return false
	})
	var refused error
	eventually(t, "the ranges lead again", func() bool {
		_, refused = adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true})
		return refused != nil && !strings.Contains(refused.Error(), "too few replicas")
	})
	require.ErrorContains(t, refused, "failover unplanned northacct")
	counted := alone(t, c, "northacct")
	require.Positive(t, counted.Rows)
	require.GreaterOrEqual(t, counted.PayloadBytes, uint64(len(big)))
	eventually(t, "the rebuild begins", func() bool {
		_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true, Force: "northacct"})
		return err == nil
	})
	requireCopied(t, c, "northacct")
	require.Nil(t, k.of(South, "only"))
	page, err := adminClient(t, c).Found(t.Context(), South, wire.FoundQuery{Account: "northacct", Values: true})
	require.NoError(t, err)
	var container, payload bool
	for _, r := range page.Rows {
		require.NotEqual(t, "both", r.Container, "%+v", r)
		if r.Service == geo.Catalog.String() {
			kept, err := catalog.ParseContainer(r.Value)
			require.NoError(t, err)
			container = container || kept.Name == "only"
		}
		if r.Container == "only" && r.Chunks > 0 {
			require.Zero(t, r.PayloadMissing)
			got, err := adminClient(t, c).FoundPayload(t.Context(), South, wire.FoundChunk{Key: r.Key})
			require.NoError(t, err)
			payload = payload || string(got.Data) == big
		}
	}
	require.True(t, container, "the container is kept")
	require.True(t, payload, "the payload of its blob is kept")
}
