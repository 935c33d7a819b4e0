package directory_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// What is listed of the catalog is what it has (R5), after each change of an account, a promotion among them, and none is read
// again that has not changed: a failover of a location looks at all accounts at each step.
//
// Capability: Failover: A failover of a whole location.
func TestR5IndexFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	south := h.south.directory
	accounts := func() map[geo.Account]*catalog.Account {
		t.Helper()
		list, err := south.Accounts(t.Context())
		require.NoError(t, err)
		fresh, err := directory.NewDirectory(h.south.stamp, "north").Accounts(t.Context())
		require.NoError(t, err)
		require.Equal(t, fresh, list)
		out := map[geo.Account]*catalog.Account{}
		for i, a := range list {
			require.True(t, i == 0 || list[i-1].Name < a.Name)
			out[a.Name] = a
		}
		return out
	}
	local := func(name geo.Account, op change.Op) {
		t.Helper()
		part := catalog.AccountPartition(name)
		stamptest.Submit(t, h.south.stamp, geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
			return tx.Local(part, change.Record{CommitTime: tx.Timestamp(0), Partition: part.Append(nil), Ops: []change.Op{op}})
		}))
	}
	before := accounts()
	require.Len(t, before, 4)
	for name, a := range accounts() {
		require.Same(t, before[name], a)
	}

	row := *before[h.name(1)]
	row.Key1 = []byte("another key")
	v, err := row.Encode()
	require.NoError(t, err)
	local(row.Name, change.Op{Value: v})
	for name, a := range accounts() {
		require.Equal(t, name != row.Name, a == before[name], name)
	}

	promotions := func() map[geo.Account]*catalog.Promotion {
		t.Helper()
		all, err := south.Promotions(t.Context())
		require.NoError(t, err)
		return all
	}
	require.Empty(t, promotions())
	_, err = south.Promoter().Promote(t.Context(), h.name(2))
	require.NoError(t, err)
	require.Len(t, promotions(), 1)
	require.NotNil(t, promotions()[h.name(2)])
	_, err = south.Promoter().EndPromotion(t.Context(), h.name(2))
	require.NoError(t, err)
	require.Equal(t, catalog.PromotionThawing, promotions()[h.name(2)].Phase)

	_, err = south.CreateAs(t.Context(), directory.Wanted{Name: "acct0000a", Redundancy: catalog.LRS})
	require.NoError(t, err)
	require.Contains(t, accounts(), geo.Account("acct0000a"))
	local(h.name(0), change.Op{Delete: true})
	require.NotContains(t, accounts(), h.name(0))
	require.Len(t, accounts(), 4)
}

// held is a stamp whose first read waits until it is let go.
type held struct {
	record.Stamp
	first atomic.Bool
	waits chan struct{}
	let   chan struct{}
}

func (h *held) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	return h.Stamp.Read(ctx, r, func(s ranges.State) error {
		err := f(s)
		if h.first.CompareAndSwap(false, true) {
			close(h.waits)
			<-h.let
		}
		return err
	})
}

// R5: a call that waits for the catalog holds up no other one, and what it has read before others have read more does not come
// back.
//
// Capability: Failover: A failover of a whole location.
func TestR5IndexIsNotHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	s := &held{Stamp: h.south.stamp, waits: make(chan struct{}), let: make(chan struct{})}
	d := directory.NewDirectory(s, "north")
	of := func() int {
		list, err := d.Accounts(t.Context())
		require.NoError(t, err)
		return len(list)
	}
	late := make(chan int)
	go func() { late <- of() }()
	<-s.waits
	before := of()
	_, err := h.south.directory.CreateAs(t.Context(), directory.Wanted{Name: "acct0000a", Redundancy: catalog.LRS})
	require.NoError(t, err)
	require.Equal(t, before+1, of())
	close(s.let)
	require.Equal(t, before+1, <-late)
	require.Equal(t, before+1, of())
}
