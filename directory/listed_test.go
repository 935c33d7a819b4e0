package directory

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// What a walk over all accounts that ended early has left out is read by the next call, which finds no change.
func TestR5WalkThatEndedEarlyIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	d := NewDirectory(s, "south")
	stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), stored{{Name: "aaa", Active: true}, {Name: "bbb", Active: true}})
	before, err := d.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, before, 2)

	ctx, cancel := context.WithCancel(t.Context())
	_, _, err = d.read(ctx, func(kv.Snapshot) error { cancel(); return nil }, true)
	require.ErrorIs(t, err, context.Canceled)
	after, err := d.Accounts(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// stored stores rows of accounts as they are.
type stored []catalog.Account

func (c stored) Evaluate(tx *ranges.Tx) error {
	for _, a := range c {
		v, err := a.Encode()
		if err != nil {
			return err
		}
		p := catalog.AccountPartition(a.Name)
		if err := tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}}); err != nil {
			return err
		}
	}
	return nil
}

// Name servers and gateways ask for names twice a second, each: an answer without a change of an account looks at none of them.
func TestNamesLookAtNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	d := NewDirectory(s, "south")
	put := func(list ...catalog.Account) { stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), stored(list)) }
	listed := func() []*indexed {
		t.Helper()
		all, err := d.listed(t.Context(), func(kv.Snapshot) error { return nil })
		require.NoError(t, err)
		return all
	}
	a := catalog.Account{Name: "aaa", Active: true, Redundancy: catalog.RAGRS, Epoch: 1, Primary: "north", Secondary: "south"}
	b := a
	b.Name = "bbb"
	put(a, b)
	n := NewNames(d, 7)
	_, version, _, err := n.Since(t.Context(), "", "")
	require.NoError(t, err)
	before := listed()
	require.Len(t, before, 2)
	require.Same(t, &before[0], &listed()[0])

	// What the last walk has found is out of the way: another one would find it again.
	found := n.rows
	n.rows = map[geo.Account]*walkedName{}
	list, same, _, err := n.Since(t.Context(), version, "")
	require.NoError(t, err)
	require.Equal(t, version, same)
	require.Empty(t, list)
	require.Empty(t, n.rows)
	n.rows = found

	b.Epoch = 2
	put(b)
	list, _, _, err = n.Since(t.Context(), version, "")
	require.NoError(t, err)
	require.Equal(t, []Name{{b.Name, b.GeoEpoch(), b.Secondary, b.Redundancy}}, list)
	after := listed()
	require.NotSame(t, &before[0], &after[0])
	require.Same(t, before[0], after[0])
	require.EqualValues(t, 1, before[1].account.Epoch, "what was listed is not changed")
	require.EqualValues(t, 2, after[1].account.Epoch)
}
