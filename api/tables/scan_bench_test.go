package tables

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// sorted is a range of rows in memory that are read without allocating, so that a benchmark
// shows what a page costs.
type sorted struct{ keys, values [][]byte }

// Get implements kv.Getter.
func (s *sorted) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

// Scan implements kv.Reader.
func (s *sorted) Scan(lower, upper []byte) (kv.Iterator, error) {
	from, to := s.find(lower), s.find(upper)
	return &sortedIterator{sorted{s.keys[from:max(from, to)], s.values[from:max(from, to)]}, -1}, nil
}

func (s *sorted) find(key []byte) int {
	return sort.Search(len(s.keys), func(i int) bool { return bytes.Compare(s.keys[i], key) >= 0 })
}

type sortedIterator struct {
	sorted
	at int
}

// Next implements kv.Iterator.
func (i *sortedIterator) Next() bool {
	i.at++
	return i.at < len(i.keys)
}

// SeekGE implements kv.Iterator.
func (i *sortedIterator) SeekGE(key []byte) bool {
	i.at = i.find(key)
	return i.at < len(i.keys)
}

// Key implements kv.Iterator.
func (i *sortedIterator) Key() []byte { return i.keys[i.at] }

// Value implements kv.Iterator.
func (i *sortedIterator) Value() []byte { return i.values[i.at] }

// Close implements kv.Iterator.
func (i *sortedIterator) Close() error { return nil }

// hundredThousand are entities as samples have them: ten properties, in 100 partitions.
func hundredThousand(t testing.TB, g keys.Generation) *sorted {
	s := &sorted{}
	for p := range 100 {
		for r := range 1000 {
			b := entity.Build(nil)
			require.NoError(t, b.AddString("Name", fmt.Sprintf("customer %d of %d", r, p)))
			require.NoError(t, b.AddString("Address", "1 Main Street, Springfield"))
			require.NoError(t, b.AddString("Email", fmt.Sprintf("c%d@example.com", r)))
			require.NoError(t, b.AddInt32("Age", int32(r%90)))
			require.NoError(t, b.AddBoolean("Active", r%2 == 0))
			require.NoError(t, b.AddInt64("Points", int64(r*p)))
			require.NoError(t, b.AddDateTime("Since", entity.TicksMin+int64(r)))
			require.NoError(t, b.AddGUID("Id", [16]byte{byte(r), byte(p)}))
			require.NoError(t, b.AddString("Phone", "555-0100"))
			require.NoError(t, b.AddInt32("Rating", int32(r%1000)))
			w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: b.Bytes()}
			effect, err := w.Evaluate(s, 16498779375125240)
			require.NoError(t, err)
			s.keys = append(s.keys, tables.Bound("acct", "tbl", g, fmt.Sprintf("p%02d", p), fmt.Sprintf("%04d", r)))
			s.values = append(s.values, effect.Ops[0].Value)
		}
	}
	return s
}

// BenchmarkQuery is one page over 100,000 entities.
func BenchmarkQuery(b *testing.B) {
	g := keys.Generation{Epoch: 1, Created: 5}
	rows := hundredThousand(b, g)
	var points []string
	for i := range 20 {
		points = append(points, fmt.Sprintf("PartitionKey eq 'p%02d' and RowKey eq '0%d00'", 5*i, i%10))
	}
	for _, tc := range []struct{ name, filter string }{
		{"scan-none", "Rating gt 5000"},
		{"scan-some", "Rating ge 995 and Active eq true"},
		{"scan-strings", "Name eq 'nobody' or Phone eq '555'"},
		{"page", ""},
		{"range-100", "PartitionKey eq 'p50' and RowKey ge '0100' and RowKey lt '0200'"},
		{"points-20", strings.Join(points, " or ")},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				wanted, err := filter.Parse(protocol.Newest, tc.filter)
				require.NoError(b, err)
				p := newPage(b, wanted, g, 1000)
				p.budget = services.NewWorkBudget(context.Background(), clock.System{}, 1<<40)
				lower, upper, _ := p.span(odata.Continuation{})
				require.NoError(b, p.fill(context.Background(), rows, lower, upper))
				p.doc.Close()
			}
		})
	}
}
