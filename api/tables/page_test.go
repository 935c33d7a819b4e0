package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
)

// alike is a table of n rows of one partition, all with the same properties.
func alike(t *testing.T, g keys.Generation, n int, props []byte) *counted {
	t.Helper()
	c := &counted{}
	w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: props}
	effect, err := w.Evaluate(c, 9)
	require.NoError(t, err)
	c.value = effect.Ops[0].Value
	for i := range n {
		c.keys = append(c.keys, string(tables.Bound("acct", "tbl", g, "f", fmt.Sprintf("%06d", i))))
	}
	return c
}

// A scan with the costliest filter over wide rows ends its page when its work is done,
// with a continuation that leads on, and at once when its client has left: it does not
// look at all rows first, as one did for minutes.
func TestCostlyFilter(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	b := entity.Build(nil)
	for i := range 250 {
		require.NoError(t, b.AddInt32(fmt.Sprintf("p%d", i), 1))
	}
	c := alike(t, g, 1500, b.Bytes())
	terms := strings.Repeat("zz eq 1 or ", 5000)
	for _, text := range []string{"PartitionKey eq 'f' and (" + terms + "zz eq 2)", terms + "zz eq 2"} {
		testCostlyFilter(t, g, c, text)
	}
}

func testCostlyFilter(t *testing.T, g keys.Generation, c *counted, text string) {
	wanted, err := filter.Parse(protocol.Newest, text)
	require.NoError(t, err)
	_, work, err := wanted.Matcher().Match(&tables.Entity{PK: "f", RK: "000000", Timestamp: 9, Props: entityOf(t, c).Props})
	require.NoError(t, err)
	require.Less(t, work, 6000, "the properties and the comparisons once each")

	p := newPage(t, wanted, g, 1000)
	lower, upper, _ := p.span(odata.Continuation{})
	c.reads = 0
	p.budget = services.NewWorkBudget(t.Context(), clock.System{}, 100*work)
	require.NoError(t, p.fill(t.Context(), c, lower, upper))
	require.NotNil(t, p.next)
	require.LessOrEqual(t, c.reads, 101)
	require.Equal(t, fmt.Sprintf("%06d", c.reads-1), p.next.RK, "the row behind those looked at")
	require.Equal(t, `{"value":[]}`, string(documentOf(p.doc)))

	ctx, leave := context.WithCancel(t.Context())
	p = newPage(t, wanted, g, 1000)
	p.budget = services.NewBudget(ctx, clock.System{})
	leave()
	c.reads = 0
	require.ErrorIs(t, p.fill(ctx, c, lower, upper), context.Canceled)
	require.Less(t, c.reads, 10)
}

// entityOf is one of the rows of a table of rows that are alike.
func entityOf(t *testing.T, c *counted) tables.Entity {
	e, err := tables.ParseRow([]byte(c.keys[0]), c.value)
	require.NoError(t, err)
	return e
}

// The search for a row behind a page that has $top rows ends, also where no key is looked at, and where the keys
// are apart it jumps from one to the next.
func TestSearchBehindTheLast(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	s := &sorted{}
	for i := range 3000 {
		b := entity.Build(nil)
		require.NoError(t, b.AddBoolean("first", i == 0))
		w := tables.Write{Op: tables.Insert, Account: "acct", Table: "tbl", Generation: g, Props: b.Bytes()}
		effect, err := w.Evaluate(s, 9)
		require.NoError(t, err)
		s.keys = append(s.keys, tables.Bound("acct", "tbl", g, fmt.Sprintf("%04d", i), "r"))
		s.values = append(s.values, effect.Ops[0].Value)
	}
	for text, stopped := range map[string]bool{"first": true, "first and RowKey eq 'r'": true, "not first": true, "first eq 1": false} {
		wanted, err := filter.Parse(protocol.Newest, text)
		require.NoError(t, err)
		p := newPage(t, wanted, g, 1)
		require.NoError(t, p.fillAll(t.Context(), s, odata.Continuation{}))
		require.Equal(t, stopped, p.next != nil, text)
	}

	c := alike(t, g, 0, []byte{1, 0})
	for i := range 2000 {
		c.keys = append(c.keys, string(tables.Bound("acct", "tbl", g, fmt.Sprintf("%02d", i/100), fmt.Sprintf("%02d", i%100))))
	}
	wanted, err := filter.Parse(protocol.Newest, "RowKey eq '50' and x eq 1")
	require.NoError(t, err)
	p := newPage(t, wanted, g, 1000)
	require.NoError(t, p.fillAll(t.Context(), c, odata.Continuation{}))
	require.Less(t, c.reads, 100)
}

// Rows that the bounds exclude are work too: skipping from partition to partition ends
// with the budget.
func TestSkippingIsWork(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	props := entity.Build(nil)
	c := alike(t, g, 0, props.Bytes())
	for i := range 1000 {
		c.keys = append(c.keys, string(tables.Bound("acct", "tbl", g, fmt.Sprintf("%06d", i), "r")))
	}
	wanted, err := filter.Parse(protocol.Newest, "RowKey eq 'none'")
	require.NoError(t, err)
	p := newPage(t, wanted, g, 1000)
	p.budget = services.NewWorkBudget(t.Context(), clock.System{}, 100*seekWork)
	lower, upper, _ := p.span(odata.Continuation{})
	require.NoError(t, p.fill(t.Context(), c, lower, upper))
	require.NotNil(t, p.next)
	require.Less(t, c.reads, 300)
}

// values returns the property v of all rows that a query finds over its pages.
func (r *rig) values(options string) (values []string, pages int) {
	r.t.Helper()
	for next := ""; ; {
		a := r.do(http.MethodGet, "/acct/tbl()?"+options+next, "")
		require.Equal(r.t, http.StatusOK, a.status, a.body)
		var doc struct{ Value []struct{ V string } }
		require.NoError(r.t, json.Unmarshal([]byte(a.body), &doc))
		for _, row := range doc.Value {
			values = append(values, row.V)
		}
		pages++
		pk, rk := a.header.Get("x-ms-continuation-NextPartitionKey"), a.header.Get("x-ms-continuation-NextRowKey")
		if pk == "" {
			return values, pages
		}
		require.NotEmpty(r.t, doc.Value, "each page shows a row")
		next = "&NextPartitionKey=" + url.QueryEscape(pk) + "&NextRowKey=" + url.QueryEscape(rk)
	}
}

// Where answers may hold little, pages are short and the rows the same; a row larger than
// the bound is answered all the same. Nothing stays held.
// It holds invariant 8.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want []string
	for i := range 20 {
		v := strings.Repeat(string(rune('a'+i)), []int{100, 3000, 32768}[i%3])
		want = append(want, v)
		require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", fmt.Sprintf("%02d", i)), `{"v":"`+v+`"}`)))
	}
	got, pages := r.values("")
	require.Equal(t, want, got)
	require.Equal(t, 1, pages)
	for _, held := range []int64{1 << 10, protocol.WindowBytes, 2 * protocol.WindowBytes} {
		answers := protocol.NewInFlight(held)
		small := r.with(func(h *Handler) { h.Answers = answers })
		got, pages = small.values("")
		require.True(t, slices.Equal(want, got), "bound of %d", held)
		require.Greater(t, pages, 2)
		require.Equal(t, http.StatusOK, small.do(http.MethodGet, "/acct/"+key("p", "02"), "").status)
		require.Equal(t, http.StatusOK, small.do(http.MethodGet, "/acct/Tables", "").status)
		part := small.parts(small.batch(single(op("GET", key("p", "02"), "")) + end))[0]
		require.True(t, strings.HasPrefix(part, "200 "), "%.100s", part)
		_, err := answers.Admit(t.Context(), held)
		require.NoError(t, err, "once the last answer is out nothing is held")
	}
}

// A first row that finds no room is waited for with nothing held: two such queries go one
// after the other, and never wait for each other.
func TestLargeRowsWaitHoldingNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var props []string
	for i := range 15 {
		props = append(props, bin(fmt.Sprintf("b%d", i), 65536))
	}
	require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", "large"), "{"+strings.Join(props, ",")+"}")))
	// Room for both first windows, and for one row.
	small := r.with(func(h *Handler) { h.Answers = protocol.NewInFlight(1<<20 + 512<<10) })
	answers := make(chan received, 8)
	for range cap(answers) {
		go func() { answers <- small.do(http.MethodGet, "/acct/tbl()", "") }()
	}
	for range cap(answers) {
		a := <-answers
		require.Equal(t, http.StatusOK, a.status)
		require.True(t, json.Valid([]byte(a.body)))
		require.Equal(t, 15, strings.Count(a.body, `"b`))
	}
}
