package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// oddKeys are around the places where another order than that of UTF-16 code units, or of numbers,
// would be another one.
func oddKeys() []string {
	return []string{"", "a", "ab", "b", "B", "10000", "92", "00092", "Football_7990", "Football_7990_01", "Football_7991", "Football_7991_03", "\uffff", "\ue000", "😀", "😀b"}
}

// drawCondition draws the text of a filter.
func drawCondition(t *rapid.T, depth int) string {
	draw := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "draw") }
	if depth > 0 {
		switch draw("and", "and", "or", "or", "not", "leaf") {
		case "and":
			return "(" + drawCondition(t, depth-1) + ") and (" + drawCondition(t, depth-1) + ")"
		case "or":
			return drawCondition(t, depth-1) + " or " + drawCondition(t, depth-1)
		case "not":
			return "not (" + drawCondition(t, depth-1) + ")"
		}
	}
	op := draw("eq", "eq", "ne", "ge", "gt", "le", "lt")
	switch draw("pk", "pk", "rk", "rk", "point", "prefix", "x", "odd") {
	case "pk":
		return "PartitionKey " + op + " '" + draw(oddKeys()...) + "'"
	case "rk":
		return "RowKey " + op + " '" + draw(oddKeys()...) + "'"
	case "point":
		return "PartitionKey eq '" + draw(oddKeys()...) + "' and RowKey eq '" + draw(oddKeys()...) + "'"
	case "prefix":
		return "PartitionKey ge 'Football_7990' and PartitionKey lt 'Football_7991'"
	case "x":
		return "x " + op + " " + draw("1", "'a'", "2L", "true")
	}
	return draw("true", "false", "x", "PartitionKey", "PartitionKey eq 1", "not x", "Timestamp lt datetime'2000-01-01'", "RowKey ne 1L")
}

// drawRows draws the rows of a table: their keys, their stored form, and the entities.
func drawRows(t *rapid.T, g keys.Generation) (*sorted, []tables.Entity) {
	draw := func(label string) string { return rapid.SampledFrom(oddKeys()).Draw(t, label) }
	stored, entities := map[string][]byte{}, map[string]tables.Entity{}
	for range rapid.IntRange(0, 30).Draw(t, "rows") {
		b := entity.Build(nil)
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "x") {
		case 0:
			err = b.AddInt32("x", int32(rapid.IntRange(0, 3).Draw(t, "int")))
		case 1:
			err = b.AddString("x", draw("text"))
		case 2:
			err = b.AddBoolean("x", rapid.Bool().Draw(t, "bool"))
		}
		require.NoError(t, err)
		w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: b.Bytes()}
		effect, err := w.Evaluate(&sorted{}, 9)
		require.NoError(t, err)
		pk, rk := draw("pk"), draw("rk")
		key := string(tables.Bound("acct", "tbl", g, pk, rk))
		stored[key], entities[key] = effect.Ops[0].Value, tables.Entity{PK: pk, RK: rk, Timestamp: 9, Props: b.Bytes()}
	}
	s, all := &sorted{}, []tables.Entity{}
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		s.keys, s.values, all = append(s.keys, []byte(key)), append(s.values, stored[key]), append(all, entities[key])
	}
	return s, all
}

// The rows of a query do not depend on its plan: for any filter over any rows, all pages together
// have the rows that the filter lets through, each once and in order, whatever ends a page: $top,
// the budget, or the border of a range. Each page advances, and no row outside of the allowed
// keys is answered or named by a token.
//
// Capability: Clients: `$filter` of tables.
func TestQueryTwin(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	rapid.Check(t, func(t *rapid.T) {
		stored, all := drawRows(t, g)
		text := drawCondition(t, 3)
		wanted, err := filter.Parse(protocol.Newest, text)
		require.NoError(t, err, text)
		key := func(label string) filter.Edge {
			k := rapid.SampledFrom(oddKeys())
			return filter.Edge{PK: k.Draw(t, label), RK: k.Draw(t, label), HasPK: rapid.Bool().Draw(t, label), HasRK: rapid.Bool().Draw(t, label)}
		}
		allowed := filter.All()
		if rapid.IntRange(0, 3).Draw(t, "signature") == 0 {
			allowed = filter.Between(key("from"), key("to"))
		}
		want, got := []string{}, []string{}
		for _, e := range all {
			ok, _, err := wanted.Matcher().Match(&e)
			require.NoError(t, err)
			if ok && allowed.Contains(e.PK, e.RK) {
				want = append(want, e.PK+"/"+e.RK)
			}
		}
		p := newPage(t, wanted, g, rapid.IntRange(1, 5).Draw(t, "top"))
		p.keys = p.keys.Within(allowed)
		work := rapid.SampledFrom([]int{1, rowWork + 5, 1 << 20}).Draw(t, "work")
		var border []byte
		if rapid.Bool().Draw(t, "split") {
			border = tables.Partition("acct", "tbl", g, rapid.SampledFrom(oddKeys()).Draw(t, "border")).Append(nil)
		}
		token := filter.Key{}
		for more := true; more; more = p.next != nil {
			p.budget = services.NewWorkBudget(context.Background(), clock.System{}, work)
			p.fillRange(t, stored, token, border)
			got = append(got, keysOf(t, documentOf(p.doc))...)
			p.doc = newDocument(t)
			if p.next != nil {
				require.Positive(t, p.next.Compare(token), "a page advances: %q behind %q", p.next, token)
				require.True(t, allowed.Contains(p.next.PK, p.next.RK), "the token %q names what is not allowed", p.next)
				require.True(t, p.keys.Contains(p.next.PK, p.next.RK), "the token %q is outside of the plan", p.next)
				token = *p.next
			}
		}
		require.Equal(t, want, got, text)
	})
}

// fillRange fills a page as call.fillPage does where a range ends at border.
func (p *page) fillRange(t require.TestingT, stored *sorted, from filter.Key, border []byte) {
	lower, upper, some := p.span(odata.Continuation{PK: from.PK, RK: from.RK, HasPK: true, HasRK: true})
	if !some {
		p.begin()
		p.end()
		p.next = nil
		return
	}
	cut := border != nil && string(border) > string(lower) && string(border) < string(upper)
	if cut {
		upper = border
	}
	require.NoError(t, p.fill(context.Background(), stored, lower, upper))
	if cut {
		require.NoError(t, p.stopAt(border))
	}
}

// keysOf are the rows of a document, as PartitionKey/RowKey.
func keysOf(t require.TestingT, document []byte) (rows []string) {
	var doc struct {
		Value []struct{ PartitionKey, RowKey string }
	}
	require.NoError(t, json.Unmarshal(document, &doc))
	for _, row := range doc.Value {
		rows = append(rows, row.PartitionKey+"/"+row.RowKey)
	}
	return rows
}

// A page with $top rows looks for another one a little further: it has no continuation if there
// is none near the end, and does not read the rest of the table if there is.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	b := entity.Build(nil)
	require.NoError(t, b.AddInt32("x", 1))
	match := alike(t, g, 10_000, b.Bytes())
	wanted, err := filter.Parse(protocol.Newest, "x eq 1 and RowKey le '000002' or x eq 2")
	require.NoError(t, err)
	for _, tc := range []struct{ rows, reads int }{{100, 100}, {10_000, 2000}} {
		c := &counted{keys: match.keys[:tc.rows], value: match.value}
		p := newPage(t, wanted, g, 3)
		require.NoError(t, p.fillAll(t.Context(), c, odata.Continuation{}))
		require.Equal(t, 3, p.rows)
		require.LessOrEqual(t, c.reads, tc.reads)
		require.Equal(t, tc.rows == 10_000, p.next != nil)
	}
}

// A page holds entities of 4 MiB by the size of their names and values, not by the length of its
// document: 1,000 entities with much metadata are one page, five of 1 MiB are two (12, A.55).
func TestPageSize(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	for _, tc := range []struct{ entities, values, length, rows int }{
		{5, 16, 32_000, 4}, {5, 12, 32_000, 5}, {1000, 150, 1, 1000}, {1000, 60, 32, 829},
	} {
		b := entity.Build(nil)
		for i := range tc.values {
			require.NoError(t, b.AddString(fmt.Sprintf("v%03d", i), strings.Repeat("x", tc.length)))
		}
		p := newPage(t, nil, g, 1000)
		require.NoError(t, p.fillAll(t.Context(), alike(t, g, tc.entities, b.Bytes()), odata.Continuation{}))
		size := entity.Size("f", "000000", b.Bytes())
		require.Equal(t, min(tc.entities, pageBytesMax/size), p.rows, size)
		require.Equal(t, tc.rows, p.rows, size)
		require.Equal(t, tc.rows < tc.entities, p.next != nil)
	}
}

// A filter of many ranges is paged like any other: jumps are work, a page ends when its work is
// done, and each advances.
func TestManyRangesAreWork(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	c := alike(t, g, 5000, []byte{1, 0})
	var terms []string
	for i := range 800 {
		terms = append(terms, fmt.Sprintf("PartitionKey eq 'f' and RowKey eq '%06d'", 5*i))
	}
	wanted, err := filter.Parse(protocol.Newest, strings.Join(terms, " or "))
	require.NoError(t, err)
	p := newPage(t, wanted, g, 1000)
	require.NoError(t, p.fillAll(t.Context(), c, odata.Continuation{}))
	require.Equal(t, 800, p.rows)
	require.LessOrEqual(t, c.reads, 801)
	p.doc = newDocument(t)
	p.budget = services.NewWorkBudget(t.Context(), clock.System{}, 100*(seekWork+rowWork))
	require.NoError(t, p.fillAll(t.Context(), c, odata.Continuation{}))
	require.InDelta(t, 100, p.rows, 1)
	require.Equal(t, &filter.Key{PK: "f", RK: fmt.Sprintf("%06d", 5*p.rows)}, p.next)
}

// slow is rows of which each takes a while to read.
type slow struct {
	*counted
	clock *clock.Manual
}

// Scan implements kv.Reader.
func (s slow) Scan(lower, upper []byte) (kv.Iterator, error) {
	it, err := s.counted.Scan(lower, upper)
	return slowIterator{it, s.clock}, err
}

type slowIterator struct {
	kv.Iterator
	clock *clock.Manual
}

// Next implements kv.Iterator.
func (i slowIterator) Next() bool {
	i.clock.Advance(20 * time.Millisecond)
	return i.Iterator.Next()
}

// A page takes 5 s at most, whatever it finds: it ends with a continuation, and the next one goes
// on from there.
func TestPageEndsInTime(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	b := entity.Build(nil)
	require.NoError(t, b.AddInt32("x", 1))
	at := clock.NewManual(time.Unix(0, 0))
	rows := slow{alike(t, g, 5000, b.Bytes()), at}
	for _, text := range []string{"x eq 1", "x eq 2", "not (x eq 2)"} {
		wanted, err := filter.Parse(protocol.Newest, text)
		require.NoError(t, err)
		token, pages := filter.Key{}, 0
		for more := true; more; pages++ {
			p := newPage(t, wanted, g, 1000)
			start := at.Now()
			p.budget = services.NewBudget(context.Background(), at)
			require.NoError(t, p.fillAll(t.Context(), rows, odata.Continuation{PK: token.PK, RK: token.RK}))
			p.doc.Close()
			require.Less(t, at.Now().Sub(start), 8*time.Second, "the clock is read every 2,000 values")
			if more = p.next != nil; more {
				require.Positive(t, p.next.Compare(token))
				token = *p.next
			}
		}
		require.Greater(t, pages, 10, text)
	}
}

// split is a stamp whose range of tables has been split, though all rows are still in one store.
type split struct {
	Stamp
	table *route.Table
	read  map[geo.RangeID]int
}

// Route implements ranges.Routed.
func (s *split) Route() *route.Table { return s.table }

// Read implements ranges.Reader.
func (s *split) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	s.read[r]++
	if r > geo.FirstRange(geo.Table) {
		r = geo.FirstRange(geo.Table)
	}
	return s.Stamp.Read(ctx, r, f)
}

// A query of a table over several ranges asks each for its part: a page ends at a border, its
// token leads into the next range, and none is given where the filter has nothing beyond.
//
// Capability: Clients: `$filter` of tables.
func TestR14PagesEndAtBorders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, pk := range []string{"a", "b", "c", "d"} {
		r.insertAll(pk, "1", "2", "3")
	}
	snap, err := ranges.Snapshot(t.Context(), r.stamp, geo.FirstRange(geo.Table))
	require.NoError(t, err)
	service := keys.AppendService(nil, geo.Table)
	it, err := snap.Scan(service, keys.PrefixEnd(service))
	require.NoError(t, err)
	require.True(t, it.Next())
	of, _, err := keys.ParsePartition(it.Key())
	require.NoError(t, err)
	require.NoError(t, it.Close())
	require.NoError(t, snap.Close())
	s := &split{Stamp: r.stamp, read: map[geo.RangeID]int{}}
	all := slices.Clone(route.First().Ranges())
	last := &all[len(all)-1]
	end := last.Span.End
	for i, pk := range []string{"b", "c5"} {
		of.Object = pk
		at := string(of.Append(nil))
		last.Span.End = at
		all = append(all, route.Range{ID: geo.RangeID(100 + i), Service: geo.Table, Span: geo.Span{Start: at, End: end}, Version: 1})
		last = &all[len(all)-1]
	}
	s.table, err = route.New(all...)
	require.NoError(t, err)
	r = r.with(func(h *Handler) { h.Stamp = s })
	clear(s.read)
	require.Equal(t, [][]string{{"a/1", "a/2", "a/3"}, {"b/1", "b/2", "b/3", "c/1", "c/2", "c/3"}, {"d/1", "d/2", "d/3"}}, r.list(""))
	require.Equal(t, []int{1, 1, 1}, []int{s.read[geo.FirstRange(geo.Table)], s.read[100], s.read[101]})
	for filter, want := range map[string][][]string{
		"PartitionKey+eq+'a'":                          {{"a/1", "a/2", "a/3"}},
		"PartitionKey+lt+'b'":                          {{"a/1", "a/2", "a/3"}},
		"PartitionKey+ge+'b'+and+PartitionKey+lt+'c5'": {{"b/1", "b/2", "b/3", "c/1", "c/2", "c/3"}},
		"RowKey+eq+'2'":                                {{"a/2"}, {"b/2", "c/2"}, {"d/2"}},
		"PartitionKey+eq+'a'+or+PartitionKey+eq+'d'":   {{"a/1", "a/2", "a/3"}, {"d/1", "d/2", "d/3"}},
	} {
		require.Equal(t, want, r.list("$filter="+filter), filter)
	}
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/tbl()?$top=0", "").status)
}
