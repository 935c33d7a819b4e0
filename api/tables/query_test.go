package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	jsonform "antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// counted is a range of rows in memory whose iterators count the keys they stand on.
type counted struct {
	keys  []string
	value []byte
	reads int
}

// Get implements kv.Getter.
func (c *counted) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

// Scan implements kv.Reader.
func (c *counted) Scan(lower, upper []byte) (kv.Iterator, error) {
	from, to := sort.SearchStrings(c.keys, string(lower)), sort.SearchStrings(c.keys, string(upper))
	return &countedIterator{c: c, rows: c.keys[from:max(from, to)]}, nil
}

type countedIterator struct {
	c    *counted
	rows []string
	at   int
}

// Next implements kv.Iterator.
func (i *countedIterator) Next() bool {
	i.at++
	if i.at <= len(i.rows) {
		i.c.reads++
	}
	return i.at <= len(i.rows)
}

// SeekGE implements kv.Iterator.
func (i *countedIterator) SeekGE(key []byte) bool {
	i.at = sort.SearchStrings(i.rows, string(key))
	return i.Next()
}

// Key implements kv.Iterator.
func (i *countedIterator) Key() []byte { return []byte(i.rows[i.at-1]) }

// Value implements kv.Iterator.
func (i *countedIterator) Value() []byte { return i.c.value }

// Close implements kv.Iterator.
func (i *countedIterator) Close() error { return nil }

// newPage is a page with all the room and work that there is.
func newPage(t require.TestingT, wanted *filter.Filter, g keys.Generation, top int) *page {
	p := &page{codec: jsonform.NoMetadata, set: &odata.Set{Table: "tbl"}, account: "acct", table: "tbl", generation: g, top: top, doc: newDocument(t)}
	plan := wanted.Plan()
	p.keys, p.matcher = plan.Keys, plan.Rest.Matcher()
	p.budget = services.NewBudget(context.Background(), clock.System{})
	return p
}

// fillAll is a page from a token on of rows that are in one range.
func (p *page) fillAll(ctx context.Context, r kv.Reader, token odata.Continuation) error {
	lower, upper, some := p.span(token)
	if !some {
		p.begin()
		p.end()
		return nil
	}
	return p.fill(ctx, r, lower, upper)
}

func newDocument(t require.TestingT) *protocol.Document {
	doc, err := (&protocol.Windows{}).Document(context.Background(), protocol.NewInFlight(AnswersBytesMax), protocol.WindowBytes, 0)
	require.NoError(t, err)
	return doc
}

// documentOf is what was appended to a document. It ends it.
func documentOf(doc *protocol.Document) []byte {
	defer doc.Close()
	return doc.AppendTo(nil)
}

// Over 100,000 rows in 100 partitions a filter on keys reads what it returns and at most
// two keys more, whatever it looks like; where it bounds the rows of several partitions,
// two more in each (protocol/table.md 12).
//
// Capability: Clients: `$filter` of tables.
// Capability: Clients: Bounded work.
func TestKeyFilterReadsItsRange(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	props := entity.Build(nil)
	w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: props.Bytes()}
	c := &counted{}
	effect, err := w.Evaluate(c, 9)
	require.NoError(t, err)
	c.value = effect.Ops[0].Value
	for p := range 100 {
		for r := range 1000 {
			c.keys = append(c.keys, string(tables.Bound("acct", "tbl", g, fmt.Sprintf("p%02d", p), fmt.Sprintf("%04d", r))))
		}
	}
	require.True(t, slices.IsSorted(c.keys))
	var points []string
	for i := range 20 {
		points = append(points, fmt.Sprintf("PartitionKey eq 'p%02d' and RowKey eq '0%d00'", 5*i, i%10))
	}
	twenty := strings.Join(points, " or ")
	for _, tc := range []struct {
		filter string
		top    int
		rows   int
		// partitions are those whose rows the filter bounds, where there are several.
		partitions int
	}{
		{"PartitionKey ge 'p10' and PartitionKey lt 'p20' and RowKey eq '0500'", 1000, 10, 10},
		{"PartitionKey ge 'p10' and PartitionKey lt 'p20' and RowKey ge '0400' and RowKey lt '0410'", 1000, 100, 10},
		{"RowKey ge '0998'", 1000, 200, 100},
		{"RowKey eq '0500' or RowKey eq '0501'", 30, 30, 16},
		{"PartitionKey eq 'p50' and RowKey ge '0100' and RowKey lt '0200'", 1000, 100, 0},
		{"PartitionKey eq 'p50' and RowKey gt '0100' and RowKey le '0200'", 1000, 100, 0},
		{"((PartitionKey eq 'p50') and ((RowKey ge '0100') and (RowKey lt '0200')))", 1000, 100, 0},
		{"RowKey lt '0200' and '0100' le RowKey and PartitionKey eq 'p50'", 1000, 100, 0},
		{"PartitionKey eq 'p50' and RowKey ge '0100' and RowKey lt '0200'", 7, 7, 0},
		{"PartitionKey eq 'p99' and RowKey ge '0990'", 1000, 10, 0},
		{"PartitionKey eq 'p50'", 1000, 1000, 0},
		{"PartitionKey eq 'p50' and RowKey eq '0007'", 1000, 1, 0},
		{"PartitionKey eq 'p50' and RowKey eq 'none'", 1000, 0, 0},
		{"PartitionKey eq 'none'", 1000, 0, 0},
		{"PartitionKey gt 'p98'", 1000, 1000, 0},
		{"PartitionKey ge 'p5' and PartitionKey lt 'p6'", 1000, 1000, 0},
		{"PartitionKey eq 'p50' and PartitionKey eq 'p51'", 1000, 0, 0},
		{twenty, 1000, 20, -1}, // Not one key more: behind a point a scan jumps.
		{twenty + " or PartitionKey eq 'none' and RowKey eq '0001'", 1000, 20, 0},
		{"not (PartitionKey ne 'p50' or RowKey ne '0007')", 1000, 1, 0},
		{"(PartitionKey eq 'p20' and RowKey ge '0990') or PartitionKey eq 'p50' and RowKey lt '0010'", 1000, 20, 0},
		{"(PartitionKey eq 'p20' or PartitionKey eq 'p70') and (RowKey eq '0001' or RowKey eq '0999')", 1000, 4, 0},
		{"PartitionKey eq 5", 1000, 0, 0},
		{"", 1000, 1000, 0},
	} {
		wanted, err := filter.Parse(protocol.Newest, tc.filter)
		require.NoError(t, err)
		p := newPage(t, wanted, g, tc.top)
		c.reads = 0
		require.NoError(t, p.fillAll(t.Context(), c, odata.Continuation{}))
		require.Equal(t, tc.rows, p.rows, tc.filter)
		require.LessOrEqual(t, c.reads, tc.rows+2+2*tc.partitions, tc.filter)
	}
}

// list follows the continuations of a query to its end and returns the rows of each
// page, as PartitionKey/RowKey.
func (r *rig) list(options string) (pages [][]string) {
	r.t.Helper()
	for next := ""; len(pages) < 50; {
		a := r.do(http.MethodGet, "/acct/tbl()?"+options+next, "")
		require.Equal(r.t, http.StatusOK, a.status, a.body)
		var doc struct {
			Value []struct{ PartitionKey, RowKey string }
		}
		require.NoError(r.t, json.Unmarshal([]byte(a.body), &doc))
		page := []string{}
		for _, row := range doc.Value {
			page = append(page, row.PartitionKey+"/"+row.RowKey)
		}
		pages = append(pages, page)
		pk, rk := a.header.Get("x-ms-continuation-NextPartitionKey"), a.header.Get("x-ms-continuation-NextRowKey")
		if pk == "" {
			return pages
		}
		next = "&NextPartitionKey=" + url.QueryEscape(pk) + "&NextRowKey=" + url.QueryEscape(rk)
	}
	r.t.Fatal("the pages do not end")
	return nil
}

func (r *rig) insertAll(pk string, rks ...string) {
	r.t.Helper()
	for chunk := range slices.Chunk(rks, 100) {
		var requests []string
		for _, rk := range chunk {
			requests = append(requests, insert(pk, rk, "x"))
		}
		require.Len(r.t, r.parts(r.batch(set(requests...)+end)), len(chunk))
	}
}

// Order of keys (4.5, A.39, A.40) and pages: at $top, at 1,000 rows with no token behind
// the last, at 4 MiB, with an empty PartitionKey, and rows that come while a client pages
// (11.5, 12, A.54 to A.57, A.59).
func TestPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, pk := range []string{"b", "B", "a1", "a10", "a2", "", "\ue000", "😀"} {
		r.insertAll(pk, "10000", "92", "00092")
	}
	var want []string
	for _, pk := range []string{"", "B", "a1", "a10", "a2", "b", "😀", "\ue000"} {
		for _, rk := range []string{"00092", "10000", "92"} {
			want = append(want, pk+"/"+rk)
		}
	}
	require.Equal(t, [][]string{want}, r.list(""))
	for _, top := range []int{1, 2, 3, 5, 23, 24} {
		pages := r.list(fmt.Sprintf("$top=%d", top))
		require.Equal(t, want, slices.Concat(pages...), top)
		require.Len(t, pages, (len(want)+top-1)/top)
	}
	a := r.do(http.MethodGet, "/acct/tbl()?$top=0", "")
	require.Equal(t, `{"value":[]}`, a.body)
	require.Empty(t, a.header.Get("x-ms-continuation-NextPartitionKey"))

	// A page goes on at its token: what comes below is missed, above it is seen.
	first := r.do(http.MethodGet, "/acct/tbl()?$top=2&$filter="+url.QueryEscape("PartitionKey eq 'B'"), "")
	r.insertAll("B", "5", "93")
	next := r.do(http.MethodGet, "/acct/tbl()?$filter="+url.QueryEscape("PartitionKey eq 'B'")+"&$select=RowKey&NextPartitionKey="+
		url.QueryEscape(first.header.Get("x-ms-continuation-NextPartitionKey"))+"&NextRowKey="+url.QueryEscape(first.header.Get("x-ms-continuation-NextRowKey")), "")
	require.Equal(t, `{"value":[{"RowKey":"92"},{"RowKey":"93"}]}`, next.body)

	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("%04d", i)
	}
	r.insertAll("thousand", many[:1000]...)
	filter := "$filter=" + url.QueryEscape("PartitionKey eq 'thousand'")
	pages := r.list(filter)
	require.Len(t, pages, 1)
	require.Len(t, pages[0], 1000)
	r.insertAll("thousand", many[1000])
	pages = r.list(filter)
	require.Len(t, pages, 2)
	require.Len(t, pages[0], 1000)
	require.Equal(t, []string{"thousand/1000"}, pages[1])

	for i := range 6 {
		var props []string
		for n := range 15 {
			props = append(props, fmt.Sprintf(`"b%d@odata.type":"Edm.Binary","b%d":"%s"`, n, n, strings.Repeat("AAAA", 65536/3)))
		}
		require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("large", fmt.Sprint(i)), "{"+strings.Join(props, ",")+"}")))
	}
	pages = r.list("$filter=" + url.QueryEscape("PartitionKey eq 'large'"))
	require.Len(t, slices.Concat(pages...), 6)
	require.Len(t, pages, 2, "a page ends near 4 MiB")
}

// Filters over stored entities (11, A.19, A.43 to A.51): a value of another type is unlike
// the literal, an absent property is false, and blanks may come as + or %20.
func TestFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for rk, props := range map[string]string{
		"int": `"x":5`, "double": `"x":5.0`, "string": `"x":"5"`, "long": `"x@odata.type":"Edm.Int64","x":"5"`, "bool": `"x":true`,
		"date": `"x@odata.type":"Edm.DateTime","x":"2020-01-01T00:00:00Z"`, "none": `"y":1`,
		"guid":   `"x@odata.type":"Edm.Guid","x":"c9da6455-213d-42c9-9a79-3e9149a57833"`,
		"binary": `"x@odata.type":"Edm.Binary","x":"Cv8="`, "quote": `"x":"O'Hara"`,
	} {
		require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", rk), "{"+props+"}")))
	}
	for filter, want := range map[string]string{
		"x eq 5":                  "double int long",
		"x eq 5L":                 "double long",
		"x eq 5.0":                "double",
		"x gt 1.2":                "double",
		"x ge 3":                  "double int long",
		"x eq '5'":                "string",
		"x ne 1":                  "binary bool date double guid int long quote string",
		"not (x eq 5)":            "binary bool date guid none quote string",
		"x":                       "bool",
		"not x and RowKey lt 'c'": "binary",
		"x eq true or y eq 1":     "bool none",
		"x eq datetime'2020-01-01T02:00:00+02:00'":                "date",
		"x eq guid'C9DA6455-213d-42c9-9a79-3e9149a57833'":         "guid",
		"x eq X'0aFF' or x eq binary'00'":                         "binary",
		"x eq 'O''Hara'":                                          "quote",
		"PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'c'": "binary bool",
		"(RowKey eq 'int' or RowKey eq 'long')and(x eq 5)":        "int long",
		"RowKey eq 'int' or x eq 5 and y eq 1":                    "int",
		"PartitionKey eq 5":                                       "",
		"Timestamp gt datetime'2020-01-01'  and y eq 1":           "none",
		"Timestamp lt datetime'2020-01-01'":                       "",
	} {
		for _, text := range []string{url.QueryEscape(filter), url.PathEscape(filter)} {
			var got []string
			for _, row := range slices.Concat(r.list("$filter=" + strings.ReplaceAll(text, "+02", "%2B02"))...) {
				got = append(got, strings.TrimPrefix(row, "p/"))
			}
			require.Equal(t, want, strings.Join(got, " "), filter)
		}
	}
	a := r.do(http.MethodGet, "/acct/Tables?$filter="+url.QueryEscape("TableName ge 'T' and TableName lt 'U'"), "")
	require.Equal(t, `{"value":[{"TableName":"tbl"}]}`, a.body)
}

// expiring is a stamp whose lease runs out during every first read, so that it is done
// again (ranges.Range.Read).
type expiring struct {
	Stamp
	reads int
}

// Read implements ranges.Reader.
func (e *expiring) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	e.reads++
	return e.Stamp.Read(ctx, r, func(s ranges.State) error { return errors.Join(f(s), f(s)) })
}

// A query whose read is done again scans once, answers once, and leaves no snapshot
// open, which the rig's Close would report.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertAll("p", "1", "2", "3")
	e := &expiring{Stamp: r.stamp}
	r = r.with(func(h *Handler) { h.Stamp = e })
	require.Equal(t, [][]string{{"p/1", "p/2"}, {"p/3"}}, r.list("$top=2"))
	require.Equal(t, `{"value":[{"TableName":"tbl"}]}`, r.do(http.MethodGet, "/acct/Tables", "").body)
	require.GreaterOrEqual(t, e.reads, 5)
}
