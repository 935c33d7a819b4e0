package dev

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/stamp/keys"
)

// rowsAt counts the rows that all nodes of a location hold under a prefix of a service's keys, but for the
// record of an account itself; -1 while a node does not run.
func rowsAt(t *testing.T, c *Cluster, l geo.Location, s geo.Service, account geo.Account, prefix []byte) (n int) {
	t.Helper()
	stamp := runningStamp(c.locations[l])
	if stamp == nil {
		return -1
	}
	for _, id := range stamp.Nodes() {
		node := stamp.Node(id)
		if node == nil {
			return -1
		}
		snap := node.Range(geo.FirstRange(s)).State().Snapshot()
		require.NoError(t, keys.Each(snap, prefix, func(key, _ []byte) error {
			if p, _, err := keys.ParsePartition(key); err != nil || p != catalog.AccountPartition(account) {
				n++
			}
			return nil
		}))
		require.NoError(t, snap.Close())
	}
	return n
}

// copyAt counts the rows that all nodes of a location hold of an account.
func copyAt(t *testing.T, c *Cluster, l geo.Location, account geo.Account) (n int) {
	t.Helper()
	for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
		n += rowsAt(t, c, l, s, account, keys.AppendAccount(nil, s, account))
	}
	return n
}

// R8, R14: the rows of a deleted table and of a deleted container are gone from every node of both locations, without a
// restart, and nothing else is. A table that is created again under the name begins empty and keeps what is
// written to it. The two copies are the same afterwards.
func TestR8DeletedTableIsSwept(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, func(o *location.Options) { o.SweepEvery = 20 * time.Millisecond })
	ctx := t.Context()
	createTable(t, c, "northacct")
	createTable(t, c, "southacct")
	b := blobClient(t, c, "northacct")
	for _, name := range []string{"dies", "lives"} {
		_, err := b.CreateContainer(ctx, name, nil)
		require.NoError(t, err)
		for i := range 4 {
			_, err := b.UploadBuffer(ctx, name, fmt.Sprintf("b%d", i), blobContent(40<<10, byte(i)), nil)
			require.NoError(t, err)
		}
	}
	for i := range 40 {
		put(t, c, "northacct", fmt.Sprint("k", i), "v")
	}
	put(t, c, "southacct", "k", "v")
	prefix := func(l geo.Location, s geo.Service, a geo.Account, name string) []byte {
		found, err := catalog.Lookup(leaderOf(c, l, geo.FirstRange(geo.Catalog)).State(), s, a, name)
		require.NoError(t, err)
		return found.Prefix(s, a)
	}
	old, photos := prefix(North, geo.Table, "northacct", "tbl"), prefix(North, geo.Blob, "northacct", "dies")
	lives, other := prefix(North, geo.Blob, "northacct", "lives"), prefix(South, geo.Table, "southacct", "tbl")
	both := func(s geo.Service, prefix []byte) int {
		return rowsAt(t, c, North, s, "", prefix) + rowsAt(t, c, South, s, "", prefix)
	}
	eventually(t, "all nodes have the rows", func() bool {
		return both(geo.Table, old) == 6*40 && both(geo.Table, other) == 6 && both(geo.Blob, photos) > 0 &&
			both(geo.Blob, photos) == both(geo.Blob, lives) && both(geo.Blob, photos)%6 == 0
	})
	blobRows := both(geo.Blob, lives)

	gone := call(t, c.gateway, "northacct", http.MethodDelete, "/northacct/Tables('tbl')", "")
	require.Equal(t, http.StatusNoContent, gone.status, gone.body)
	_, err := b.DeleteContainer(ctx, "dies", nil)
	require.NoError(t, err)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "again", "v")
	eventually(t, "no node has rows of what was deleted", func() bool {
		return both(geo.Table, old) == 0 && both(geo.Blob, photos) == 0
	})
	require.Equal(t, blobRows, both(geo.Blob, lives))
	require.Equal(t, 6, both(geo.Table, other))
	require.Equal(t, "v", read(t, c, "northacct", "", "again"))
	require.Empty(t, read(t, c, "northacct", "", "k1"))
	eventually(t, "it arrives", func() bool { return read(t, c, "northacct", "-secondary", "again") == "v" })
	eventually(t, "every node has it", func() bool { return both(geo.Table, prefix(South, geo.Table, "northacct", "tbl")) == 6 })

	v := verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true})
	require.Equal(t, wire.VerifyEqual, v.Outcome)
	require.Zero(t, v.DifferencesTotal)
}
