package location

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

type staged func(tx *ranges.Tx) error

// Evaluate implements ranges.Command.
func (f staged) Evaluate(tx *ranges.Tx) error { return f(tx) }

// R16: the pages of the lost-and-found have each row once, in order, also one that cannot be decoded: it is named, with
// all that it holds, and dropped by its key.
func TestR16FoundInPages(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Table)
	id := geo.FirstRange(geo.Table)
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "south"}, Range: id, Lane: 3}
	of := keys.Found(geo.Table, st, 7)
	const rows, broken = 5, 2
	value := bytes.Repeat([]byte("v"), 600<<10)
	var want []string
	for n := range rows {
		row := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprint(n)}.Append(nil)
		want = append(want, hex.EncodeToString(append(of.Append(nil), row...)))
		stamptest.Submit(t, s, id, staged(func(tx *ranges.Tx) error {
			if n != broken {
				return tx.KeepFound(st, 7, row, value, nil)
			}
			op := change.Op{Row: row, Value: []byte("no entry")}
			return tx.Change(of, change.Record{CommitTime: tx.Timestamp(0), Partition: of.Append(nil), Ops: []change.Op{op}})
		}))
	}
	prefix := keys.AppendAccount(nil, geo.Table, keys.LostAndFound)
	list := func(values bool) (out []wire.FoundRow, pages int) {
		snap, err := ranges.Snapshot(t.Context(), s, id)
		require.NoError(t, err)
		defer func() { require.NoError(t, snap.Close()) }()
		var after []byte
		for more := true; more; pages++ {
			require.Less(t, pages, rows, "a page begins behind the one before")
			var page wire.Found
			require.NoError(t, addFound(snap, foundFrom(prefix, after), keys.PrefixEnd(prefix), values, &page))
			out = append(out, page.Rows...)
			if more = page.More; more {
				after, err = hex.DecodeString(page.Rows[len(page.Rows)-1].Key)
				require.NoError(t, err)
			}
		}
		return out, pages
	}
	for values, pages := range map[bool]int{false: 1, true: 4} {
		got, n := list(values)
		require.Equal(t, pages, n)
		var named []string
		for i, r := range got {
			named = append(named, r.Key)
			require.Equal(t, geo.Account("acct"), r.Account)
			require.Equal(t, fmt.Sprint(i), r.Object)
			require.Equal(t, i == broken, r.Unreadable != "", i)
			switch {
			case i == broken && values:
				require.Equal(t, "no entry", string(r.Value))
			case values:
				require.Equal(t, value, r.Value)
			default:
				require.Empty(t, r.Value)
			}
		}
		require.Equal(t, want, named)
	}
	key, err := hex.DecodeString(want[broken])
	require.NoError(t, err)
	drop := &ranges.DropFound{Keys: [][]byte{key}}
	stamptest.Submit(t, s, id, drop)
	require.Equal(t, 1, drop.Dropped)
	got, _ := list(false)
	require.Len(t, got, rows-1)
	require.Equal(t, prefix, foundFrom(prefix, nil))
	require.Equal(t, prefix, foundFrom(prefix, []byte{1}), "a page of another range before")
}
