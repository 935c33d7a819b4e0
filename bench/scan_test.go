package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apitables "antipode/api/tables"
	"antipode/internal/clock"
	"antipode/test/fake"
)

// An answer to a transaction is taken only with all of its parts, and one that refuses
// is named by its status and code.
func TestBatchOutcome(t *testing.T) {
	for _, tt := range []struct {
		parts, status int
		body, want    string
	}{
		{100, 204, "", ""},
		{100, 201, `{"V":"HTTP/1.1 500 of a value"}`, ""},
		{99, 204, "", "99 parts"},
		{101, 204, "", "101 parts"},
		{0, 204, "", "0 parts"},
		{1, 409, `{"odata.error":{"code":"EntityAlreadyExists"}}`, "409 EntityAlreadyExists"},
	} {
		a := apitables.NewBatchAnswer("1")
		a.OpenSet()
		for range tt.parts {
			a.Part(tt.status, "", nil, []byte(tt.body))
		}
		a.CloseSet()
		body := a.Close()
		require.Equal(t, tt.want, outcome(answer{status: 202, body: body}, nil))
	}
	require.Equal(t, "0 parts", batchOutcome(nil))
	require.NotEmpty(t, batchOutcome([]byte("\r\nHTTP/1.1 2")))
}

// feed is the answer to a query for n transactions from o on, an entity an element
// after the first, which opens it.
func feed(b *batches, o object, n int) []string {
	doc := []string{`{"value":[`}
	for i := range n * batchEntities {
		at := object{o.worker, o.n + i/batchEntities}
		b.wordOf(at, i%batchEntities)
		doc = append(doc, fmt.Sprintf(`{"PartitionKey":"p","RowKey":%q,"Timestamp":"2026","V":%q},`,
			appendRowKey(nil, at, i%batchEntities), appendFill(nil, b.word, entityFillBytes)))
	}
	return doc
}

// No entity that a query must find may be missing, another one, changed, out of order or one too
// many; that there is none at all is reported apart from the rest.
func TestCheckFeed(t *testing.T) {
	o := options(t, "--workload", workloadQuery)
	b := newBatches(o, "bench1", scanBatches)
	first := object{3, 20}
	check := func(change func(doc []string) []string) error {
		doc := change(feed(b, first, scanBatches))
		n, err := b.checkFeed(first, scanBatches, 0, false, []byte(strings.Join(doc, "")+"]}"))
		if err == nil {
			require.Equal(t, scanItems, n)
		}
		return err
	}
	require.NoError(t, check(func(doc []string) []string { return doc }))
	require.ErrorIs(t, check(func(doc []string) []string { return doc[:1] }), errAbsent)
	for name, change := range map[string]func(doc []string) []string{
		"first missing":  func(doc []string) []string { return slices.Delete(doc, 1, 2) },
		"middle missing": func(doc []string) []string { return slices.Delete(doc, 500, 501) },
		"last missing":   func(doc []string) []string { return doc[:len(doc)-1] },
		"one more":       func(doc []string) []string { return append(doc, feed(b, object{3, 30}, 1)[1]) },
		"twice":          func(doc []string) []string { return slices.Insert(doc, 9, doc[8]) },
		"out of order":   func(doc []string) []string { doc[7], doc[8] = doc[8], doc[7]; return doc },
		"value of another": func(doc []string) []string {
			doc[7] = strings.Replace(doc[7], "bench1-3-20-6-", "bench1-3-20-5-", 1)
			return doc
		},
		"end of a value":  func(doc []string) []string { doc[7] = doc[7][:len(doc[7])-4] + `?"},`; return doc },
		"value too short": func(doc []string) []string { doc[7] = doc[7][:len(doc[7])-4] + `"},`; return doc },
		"value too long":  func(doc []string) []string { doc[7] = doc[7][:len(doc[7])-3] + `b"},`; return doc },
		"no value":        func(doc []string) []string { doc[1000], _, _ = strings.Cut(doc[1000], `,"V"`); return doc },
		"cut off":         func(doc []string) []string { doc[1000] = doc[1000][:700]; return doc },
	} {
		err := check(change)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, errAbsent, name)
	}
}

// A query whose page is short goes on from there, and must have found everything by its last page.
func TestQueryContinues(t *testing.T) {
	q := newScan(options(t, "--workload", workloadQuery, "--rows", "2000"), "bench1", 0).(*query)
	first := q.next().query
	all := feed(q.batches, q.first, scanBatches)[1:]
	page := func(next string, rows []string) (more bool, err error) {
		return q.check(answer{next: next, body: []byte(`{"value":[` + strings.Join(rows, "") + "]}")})
	}
	for _, part := range [][2]int{{0, 300}, {300, 300}, {300, 301}} { // A page may be empty.
		more, err := page("&NextRowKey=1", all[part[0]:part[1]])
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, first+"&NextRowKey=1", q.next().query)
	}
	more, err := page("", all[301:])
	require.NoError(t, err)
	require.False(t, more)
	require.NotContains(t, q.next().query, "NextRowKey")
	all = feed(q.batches, q.first, scanBatches)[1:]
	_, err = page("&NextRowKey=1", all[:300])
	require.NoError(t, err)
	_, err = page("", all[301:])
	require.ErrorContains(t, err, "in place of entity", "what the second page skipped is missing")
	require.NotContains(t, q.next().query, "NextRowKey", "after an error a query begins")
	all = feed(q.batches, q.first, scanBatches)[1:]
	_, err = page("&NextRowKey=1", all[:300])
	require.NoError(t, err)
	_, err = page("", all[300:999])
	require.ErrorContains(t, err, "999 entities of 1000")
}

// A search asks for page after page until the last, and must have found the one entity by then, with its value.
func TestSearch(t *testing.T) {
	o := options(t, "--workload", workloadSearch, "--rows", "2000", "--concurrency", "2")
	s := newScan(o, "bench1", 1).(*search)
	first := s.next().query
	require.NotContains(t, first, "NextRowKey")
	found := feed(s.batches, s.wanted, 1)[s.index+1]
	other := feed(s.batches, s.wanted, 1)[(s.index+1)%batchEntities+1]
	page := func(next string, rows ...string) (bool, error) {
		return s.check(answer{next: next, body: []byte(`{"value":[` + strings.Join(rows, "") + "]}")})
	}
	again := func(next string, rows ...string) {
		more, err := page(next, rows...)
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, first+next, s.next().query)
	}
	again("&NextRowKey=1")
	again("&NextRowKey=2", found)
	more, err := page("")
	require.NoError(t, err)
	require.False(t, more)
	for name, rows := range map[string][]string{"none": nil, "another": {other}, "two": {found, other}, "twice": {found, found}} {
		s.next()
		_, err := page("", rows...)
		require.Error(t, err, name)
	}
}

// A table has as many entities before the run as --depth says, those of the run apart.
func TestDepthOfATable(t *testing.T) {
	entities := &store{Store: fake.New(fake.Faults{}, 0)}
	server := httptest.NewServer(entities)
	defer server.Close()
	o := options(t, "--workload", workloadInsert, "--endpoint", server.URL+"/devstoreaccount1", "--admin", "",
		"--concurrency", "2", "--depth", "500", "--duration", "200ms", "--warmup", "0s", "--read-back", "4")
	require.NoError(t, measure(t.Context(), o, clock.System{}, t.Output()))
	require.Len(t, entities.sets, 5)
	seen := map[string]bool{}
	for _, set := range entities.sets {
		for _, write := range set.writes {
			seen[write.PK+" "+write.RK] = true
		}
	}
	require.Len(t, seen, 500)
}

// A run goes on with the table of a former one, and finds its rows.
func TestTableOfAFormerRun(t *testing.T) {
	entities := &store{Store: fake.New(fake.Faults{}, 0)}
	server := httptest.NewServer(entities)
	defer server.Close()
	for _, workload := range []string{workloadInsert, workloadGet} {
		o := options(t, "--workload", workload, "--endpoint", server.URL+"/devstoreaccount1", "--admin", "", "--table", "former",
			"--rows", "10", "--concurrency", "2", "--duration", "100ms", "--warmup", "0s", "--read-back", "4")
		require.NoError(t, measure(t.Context(), o, clock.System{}, t.Output()))
	}
	_, err := parse([]string{"--workload", "queue-put", "--table", "former"}, t.Output())
	require.ErrorContains(t, err, "--table is of")
}

// checkPage checks a page of a listing.
func checkPage(l *list, body []byte) error {
	_, err := l.check(answer{body: body})
	return err
}

// A listing is followed by its markers page after page and begins again behind the
// last; of a page's names none may be missing, another one or one too many.
func TestList(t *testing.T) {
	var names []string
	for i := range 2 * scanItems {
		names = append(names, string(appendListedName(nil, i)))
	}
	require.True(t, slices.IsSorted(names))
	l := &list{name: "bench1", pages: 2}
	for range 2 {
		require.NotContains(t, l.next().query, "marker")
		require.NoError(t, checkPage(l, listing(names, 0)))
		require.Contains(t, l.next().query, "&marker=1000")
		require.NoError(t, checkPage(l, listing(names, 1000)))
	}
	for name, page := range map[string][]byte{
		"one missing":    listing(slices.Delete(slices.Clone(names), 500, 501), 0),
		"last missing":   listing(names[:999], 0),
		"no marker":      listing(names[:1000], 0),
		"another page":   listing(names, 1000),
		"one more":       append(listing(names, 0), "<Name>x</Name>"...),
		"another name":   listing(append([]string{"p000000/00000000x"}, names[1:]...), 0),
		"cut off":        listing(names, 0)[:2000],
		"nothing at all": nil,
	} {
		require.Error(t, checkPage(l, page), name)
	}
	short := func(from, to int, marker string) (more bool) {
		end := "<NextMarker>" + marker + "<"
		page := bytes.ReplaceAll(listing(names[from:to], 0), []byte("<NextMarker><"), []byte(end))
		more, err := l.check(answer{body: page})
		require.NoError(t, err)
		return more
	}
	require.True(t, short(0, 840, "840"), "a page that ends sooner is continued")
	require.Contains(t, l.next().query, "maxresults=160&marker=840")
	require.True(t, short(840, 840, "840+"))
	require.False(t, short(840, 1000, "1000"))
	require.Contains(t, l.next().query, "maxresults=1000&marker=1000")
	require.True(t, short(1000, 1001, "1001"))
	require.Error(t, checkPage(l, listing(names, 1002)), "a page that is continued lacks a name")
	require.NotContains(t, l.next().query, "marker")
	require.NoError(t, checkPage(l, listing(names, 0)))
	require.Error(t, checkPage(l, listing(names[:1999], 1000)), "last missing on the last page")
	require.NoError(t, checkPage(l, listing(names, 0)))
	require.Error(t, checkPage(l, append(listing(names, 1000), "<Name>x</Name>"...)), "one more on the last page")
	require.NotContains(t, l.next().query, "marker", "after a wrong page the listing begins again")
	require.NoError(t, checkPage(l, listing(names, 0)))
	names = append(names, "q")
	require.Error(t, checkPage(l, listing(names, 1000)), "a marker on the last page")
}

// Numbers are padded as the formats of the other workloads pad them.
func TestAppendNumber(t *testing.T) {
	for _, width := range []int{1, 2, 4, 8} {
		for _, n := range []int{0, 1, 9, 10, 99, 100, 12345, 99999999} {
			require.Equal(t, fmt.Sprintf("%0*d", width, n), string(appendNumber(nil, n, width)))
		}
	}
}

// Workers first write all that the scans will find, dealt out without rest.
func TestShare(t *testing.T) {
	for _, workers := range []int{1, 3, 16, 64} {
		for _, n := range []int{1, 10, 16, 2000} {
			sum := 0
			for id := range workers {
				sum += share(n, id, workers)
			}
			require.Equal(t, n, sum)
		}
	}
}
