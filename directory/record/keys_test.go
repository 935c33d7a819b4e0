package record_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/directory/record/recordtest"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R22: the keys of a span come in pages, and so do the generations of which it has rows, each once.
func TestR22KeysOfComeInPages(t *testing.T) {
	t.Parallel()
	r := recordtest.New(t, geo.Table)
	r.Gates(change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true})
	r.Create("t")
	var want [][]byte
	stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), recordtest.Does(func(tx *ranges.Tx) error {
		for i := range record.GenerationsMax {
			p := keys.Partition{
				Service: geo.Table, Account: "acct", Container: fmt.Sprintf("u%03d", i), Generation: keys.Generation{Epoch: 1, Created: 3}, Object: "p",
			}
			want = append(want, record.ContainerPrefix(p))
			rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil)}
			for row := range 3 {
				rec.Ops = append(rec.Ops, change.Op{Row: fmt.Append(nil, row), Value: []byte("v")})
			}
			if err := tx.Local(p, rec); err != nil {
				return err
			}
		}
		return nil
	}))
	list := func(of record.Span) (all [][]byte, pages int) {
		for of.From != nil {
			there, err := record.ParseKeysOf((&record.KeysOf{Span: of}).Encode())
			require.NoError(t, err)
			stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), there)
			here := &record.KeysOf{}
			require.NoError(t, here.DecodeResult(there.EncodeResult()))
			all, of.From, pages = append(all, here.Out.Keys...), here.Out.Next, pages+1
		}
		return all, pages
	}
	prefix := keys.AppendAccount(nil, geo.Table, "acct")
	of := record.Span{From: prefix, End: keys.PrefixEnd(prefix), Generations: true}
	all, pages := list(of)
	require.Equal(t, want, all[1:], "and the table t before")
	require.Equal(t, 2, pages)
	of.Generations = false
	all, pages = list(of)
	require.Len(t, all, 3*record.GenerationsMax+1)
	require.Equal(t, 2, pages)
}
