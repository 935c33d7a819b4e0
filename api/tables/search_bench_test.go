package tables

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// searched is a state store with entities of 1 KiB in the block cache, compacted: of one long text, or of ten properties.
func searched(b *testing.B, g keys.Generation, rows int, properties func(b *entity.Builder, i int) error) *state.Store {
	shared := state.NewShared(256<<20, 100)
	s, err := state.Open("state", state.Options{FS: vfs.NewMem(), Shared: shared})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, s.Close())
		shared.Close()
	})
	for i := 0; i < rows; i += 100 {
		batch := s.NewBatch()
		for r := range 100 {
			props := entity.Build(nil)
			require.NoError(b, properties(&props, i+r))
			w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: props.Bytes()}
			effect, err := w.Evaluate(&sorted{}, 16498779375125240)
			require.NoError(b, err)
			key := tables.Bound("acct", "tbl", g, fmt.Sprintf("p%04d", i/100*31%1000), fmt.Sprintf("00-%08d-%02d", i/100, r))
			require.NoError(b, batch.Set(key, effect.Ops[0].Value))
		}
		require.NoError(b, s.Commit(batch))
		require.NoError(b, batch.Close())
	}
	lower, upper := tables.TableSpan("acct", "tbl", g)
	s.Wiped(state.Span{Lower: lower, Upper: upper})
	_, err = s.Reclaim(b.Context()) // Nothing is compacted meanwhile.
	require.NoError(b, err)
	it, err := s.Scan(lower, upper) // Into the cache.
	require.NoError(b, err)
	for it.Next() {
	}
	require.NoError(b, it.Close())
	return s
}

// BenchmarkSearch is a search for an entity that is not there, by a property, in a state store.
func BenchmarkSearch(b *testing.B) {
	const rows = 50_000
	g := keys.Generation{Epoch: 1, Created: 5}
	long := searched(b, g, rows, func(b *entity.Builder, i int) error {
		word := fmt.Sprintf("bench-0-%d-%d-", i/100, i%100)
		return b.AddString("V", strings.Repeat(word, 960/len(word)))
	})
	ten := searched(b, g, rows, func(b *entity.Builder, i int) (err error) {
		for n := range 9 {
			if err == nil {
				err = b.AddString(fmt.Sprintf("Property%d", n), strings.Repeat(fmt.Sprint(i%1000), 30))
			}
		}
		if err == nil {
			err = b.AddInt32("Rating", int32(i))
		}
		return err
	})
	for _, tc := range []struct {
		name, filter string
		store        *state.Store
	}{
		{"range", "V ge 'bench-0-100-100-' and V lt 'bench-0-100-100.'", long},
		{"equal", "V eq 'bench'", long},
		{"last", "Rating eq 100000", ten},
		{"four", "Property1 eq 'x' and Rating gt 5 or Property3 eq '1' or Property8 eq '2'", ten},
		{"missing", "Missing eq 5", ten},
		{"key", "RowKey eq '1' or Property0 eq '1'", ten},
	} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				wanted, err := filter.Parse(protocol.Newest, tc.filter)
				require.NoError(b, err)
				p := newPage(b, wanted, g, 1000)
				p.budget = services.NewWorkBudget(context.Background(), clock.System{}, 1<<40)
				lower, upper, _ := p.span(odata.Continuation{})
				snap := tc.store.NewSnapshot()
				require.NoError(b, p.fill(context.Background(), snap, lower, upper))
				require.NoError(b, snap.Close())
				require.Zero(b, p.rows)
				p.doc.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
