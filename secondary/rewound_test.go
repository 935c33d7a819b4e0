package secondary

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R14, R22: at a former primary whose catalog is not rewound yet, by the replica that is looked at, a record of a container
// that is over there waits, and is not left out: it may live at the present primary. One of a container that is over by the
// catalog that is rewound is left out.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22RecordWaitsForTheCatalogToBeRewound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Catalog, geo.Table)
		cat, id := geo.FirstRange(geo.Catalog), geo.FirstRange(geo.Table)
		applier := NewApplier(s, route.First())
		epoch := geo.Epoch{Number: 2, Location: "north"}
		for _, r := range []geo.RangeID{cat, id} {
			stamptest.Submit(t, s, r, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: epoch, Role: change.RoleSecondary, Open: true}})
		}
		of := catalog.Container{Version: 1, Name: "t", Epoch: 1, Created: 10, Modified: 10}
		set := func(p keys.Partition, row, value []byte) {
			t.Helper()
			stamptest.Submit(t, s, cat, stamptest.Change{Partition: p, Record: change.Record{Ops: []change.Op{{Row: row, Value: value}}}})
		}
		claims := func(rewound bool) {
			t.Helper()
			c := change.LostClaim{Number: epoch.Number, Location: epoch.Location, Rewound: rewound}
			set(keys.LostClaims(geo.Catalog, "acct"), keys.ClaimRow(epoch), change.AppendLostClaim(nil, c))
		}
		stored := func(deleted geo.Timestamp) {
			t.Helper()
			of.Deleted = deleted
			v, err := json.Marshal(of)
			require.NoError(t, err)
			set(catalog.ContainerPartition(geo.Table, "acct", "t"), nil, v)
		}
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Generation: of.Generation(), Object: "p"}
		prev := geo.Head{}
		take := func(n geo.Seq) *receive.Record {
			t.Helper()
			rec := change.Record{
				Epoch: epoch, Range: id, Lane: p.Lane(), Service: geo.Table, Account: "acct", Seq: n, Prev: prev.Hash,
				CommitTime: geo.Timestamp(100 * n), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
			}
			encoded, err := change.AppendRecord(nil, &rec)
			require.NoError(t, err)
			b := &receive.Batch{Source: geo.SourceRange{Origin: "north", Range: id}, Records: []*receive.Record{{Record: rec, Bytes: encoded}}}
			submit(t, func(done func(error)) { applier.Apply(b, done) })
			if b.Records[0].Outcome == receive.Applied {
				prev = geo.Head{Seq: n, Hash: change.HashOf(encoded)}
			}
			return b.Records[0]
		}
		has := func() bool {
			t.Helper()
			_, ok, err := s.Leader(id).State().Get(append(p.Append(nil), 'r'))
			require.NoError(t, err)
			return ok
		}

		stored(50) // Its deletion was lost.
		claims(false)
		got := take(1)
		require.Equal(t, receive.Wait, got.Outcome)
		require.Equal(t, receive.WaitsForGeneration, got.For)
		stored(0)
		claims(true)
		require.Equal(t, receive.Applied, take(1).Outcome)
		require.True(t, has())

		stored(150) // The present primary has deleted it since.
		stamptest.Submit(t, s, id, stamptest.Change{Partition: p, Record: change.Record{Ops: []change.Op{{Row: []byte("r"), Delete: true}}}})
		require.Equal(t, receive.Applied, take(2).Outcome)
		require.False(t, has(), "it is left out")
	})
}

// goesOn is a replica of the catalog that is rewound between two looks at it.
type goesOn struct{ looks [][]byte }

// Get implements kv.Getter.
func (c *goesOn) Get([]byte) ([]byte, bool, error) {
	v := c.looks[0]
	c.looks = c.looks[1:]
	return v, true, nil
}

// Gate implements containers.
func (c *goesOn) Gate(geo.Account) (change.Gate, error) { return change.Gate{}, nil }

// R14, R22: where the catalog was rewound after the container was looked up, and before the claim was, the container is looked
// up again: what the first look saw is that of the lost changes.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22ContainerIsLookedUpOnceItIsRewound(t *testing.T) {
	t.Parallel()
	of := catalog.Container{Version: 1, Name: "t", Epoch: 1, Created: 10, Modified: 10}
	lives, err := json.Marshal(of)
	require.NoError(t, err)
	of.Deleted = 50
	over, err := json.Marshal(of)
	require.NoError(t, err)
	epoch := geo.Epoch{Number: 2, Location: "north"}
	claim := change.AppendLostClaim(nil, change.LostClaim{Number: epoch.Number, Location: epoch.Location, Rewound: true})
	c := &apply{catalog: &goesOn{looks: [][]byte{over, claim, lives}}}
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Generation: of.Generation()}
	found, wait, err := c.container(p, epoch)
	require.NoError(t, err)
	require.False(t, wait)
	require.False(t, found.Over(p.Generation))
}
