package dev

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
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
