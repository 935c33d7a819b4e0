package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cases 54 to 59: pages.
func pageCases() []testCase {
	return []testCase{
		{54, "1000 rows and 1001", mostRows},
		{55, "pages of 4 MiB", largePages},
		{56, "two rows a page", pagesOfTwo},
		{57, "rows beside a token", besideToken},
		{58, "tokens after a restart", afterRestart},
		{59, "empty partition key as continuation", emptyPartition},
	}
}

// token is the continuation of an answer, as the options of the next request; empty at the end.
func (a *answer) token() (options string) {
	a.rig.Helper()
	for _, name := range []string{"NextPartitionKey", "NextRowKey"} {
		values := a.header.Values("x-ms-continuation-" + name)
		if len(values) == 0 {
			require.True(a.rig, name == "NextPartitionKey" || options == "", a.message())
			continue
		}
		require.Regexp(a.rig, `^1!\d+![A-Za-z0-9+/]*-{0,2}$`, values[0], "not ASCII, with blanks, or empty")
		options += "&" + name + "=" + url.QueryEscape(values[0])
	}
	return options
}

// keysOf are the texts of the rows n to m of partition p.
func keysOf(n, m int) (keys []string) {
	for i := n; i < m; i++ {
		keys = append(keys, fmt.Sprintf("p/%04d", i))
	}
	return keys
}

func mostRows(r *rig) {
	r.create()
	for i := 0; i < 1000; i += 100 {
		var set changeSet
		for _, key := range keysOf(i, i+100) {
			set.insert(r, "p", strings.TrimPrefix(key, "p/"), "")
		}
		set.succeeds(r)
	}
	for _, path := range []string{"/" + r.table, "/" + r.table + "()?$top=1000", r.filtered("PartitionKey eq 'p'")} {
		a := r.read(path)
		require.Equal(r, keysOf(0, 1000), a.keys())
		require.Empty(r, a.token())
	}
	r.added("p", "1000", "")
	a := r.read("/" + r.table + "()?$filter=true")
	require.Equal(r, keysOf(0, 1000), a.keys())
	require.NotEmpty(r, a.token())
	a = r.read("/" + r.table + "()?$filter=true" + a.token())
	require.Equal(r, []string{"p/1000"}, a.keys())
	require.Empty(r, a.token())
}

func largePages(r *rig) {
	r.create()
	// An entity of 1 MiB but for some bytes, by the formula of section 4.6 and as JSON: é has two bytes
	// in UTF-8 and in UTF-16.
	var b strings.Builder
	for i := range 15 {
		fmt.Fprintf(&b, `,"s%02d":"%s"`, i, strings.Repeat("é", 32768))
	}
	fmt.Fprintf(&b, `,"s15":"%s"`, strings.Repeat("é", 32768-150))
	for i := range 5 {
		a := r.insert("p", fmt.Sprint(i), b.String(), "Prefer", "return-no-content").is(http.StatusNoContent)
		require.Empty(r, a.body)
	}
	a := r.read("/"+r.table+"()?$top=1000", "Accept", "application/json")
	require.Equal(r, []string{"p/0", "p/1", "p/2", "p/3"}, a.keys())
	require.NotEmpty(r, a.token())
	a = r.read("/" + r.table + "()?$top=1000" + a.token())
	require.Equal(r, []string{"p/4"}, a.keys())
	require.Empty(r, a.token())
	r.made = false // What settled would read is more than a page.
}

func pagesOfTwo(r *rig) {
	r.create()
	for i := range 5 {
		r.added("p", fmt.Sprint(i), "")
	}
	var pages [][]string
	for next := ""; len(pages) == 0 || next != ""; {
		a := r.read("/" + r.table + "()?$top=2" + next)
		pages, next = append(pages, a.keys()), a.token()
		require.LessOrEqual(r, len(pages), 3)
	}
	require.Equal(r, [][]string{{"p/0", "p/1"}, {"p/2", "p/3"}, {"p/4"}}, pages)

	// Only NextPartitionKey: from its first row on.
	next, _, _ := strings.Cut(r.read("/"+r.table+"()?$top=2").token(), "&NextRowKey=")
	require.Equal(r, []string{"p/0", "p/1"}, r.read("/"+r.table+"()?$top=2"+next).keys())
}

func besideToken(r *rig) {
	r.create()
	for _, rk := range []string{"a", "b", "c", "e"} {
		r.added("p", rk, "")
	}
	a := r.read("/" + r.table + "()?$top=3")
	require.Equal(r, []string{"p/a", "p/b", "p/c"}, a.keys())
	require.Equal(r, "&NextPartitionKey=1%214%21cA--&NextRowKey=1%214%21ZQ--", a.token(), "the key at which the next page starts")
	r.added("p", "d", "")
	r.added("p", "f", "")
	b := r.read("/" + r.table + "()?$top=3" + a.token())
	require.Equal(r, []string{"p/e", "p/f"}, b.keys())
	require.Empty(r, b.token())
	r.do("DELETE", r.path("p", "e"), "", "If-Match", "*").is(http.StatusNoContent)
	require.Equal(r, []string{"p/f"}, r.read("/"+r.table+"()?$top=3"+a.token()).keys(), "its row need not exist")
}

// earlier is what the cases of a restart did before it.
type earlier struct {
	// resting is the answer to a creation of a name that rests.
	resting *answer
	// token continues behind the first two of five rows.
	token string
}

// begin does what comes before the restart in cases 5 and 58.
func (s *suite) begin(t *testing.T) (e earlier) {
	r := s.rig(t, 5)
	r.create()
	r.added("p", "r", "")
	r.do("DELETE", "/Tables('"+r.table+"')", "").is(http.StatusNoContent)
	r.read("/"+r.table+"()").fails(http.StatusNotFound, "TableNotFound", tableNotFound)
	e.resting = r.do("POST", "/Tables", `{"TableName":"`+r.table+`"}`)

	r = s.rig(t, 58)
	r.create()
	for i := range 5 {
		r.added("p", fmt.Sprint(i), "")
	}
	a := r.read("/" + r.table + "()?$top=2")
	require.Equal(r, []string{"p/0", "p/1"}, a.keys())
	e.token = a.token()
	return e
}

func afterRestart(r *rig) {
	r.made = true
	a := r.read("/" + r.table + "()?$top=2" + r.suite.before.token)
	require.Equal(r, []string{"p/2", "p/3"}, a.keys())
	require.Equal(r, []string{"p/4"}, r.read("/"+r.table+"()?$top=2"+a.token()).keys())
	for _, garbage := range []string{
		"NextPartitionKey=garbage", "NextPartitionKey=1!4!MQ==", "NextPartitionKey=1!5!MQ--", "NextPartitionKey=2!4!MQ--", "NextPartitionKey=1!4!%FF%FF--",
		"NextPartitionKey=1!4!MQ--&NextRowKey=x", "NextRowKey=1!4!MQ--",
	} {
		r.read("/"+r.table+"()?"+garbage).fails(http.StatusBadRequest, "InvalidInput", "")
	}
	require.Len(r, r.read("/"+r.table+"()?NextPartitionKey=&NextRowKey=").keys(), 5, "empty options count as absent")
	r.do("GET", "/Tables?NextTableName=garbage", "").fails(http.StatusBadRequest, "InvalidInput", "")
}

func emptyPartition(r *rig) {
	r.create()
	for _, rk := range []string{"", "a", "b"} {
		r.added("", rk, "")
	}
	r.added("p", "", "")
	var all []string
	for next := "&"; next != ""; {
		a := r.read("/" + r.table + "()?$top=1" + strings.TrimPrefix(next, "&&"))
		require.Len(r, a.keys(), 1)
		all = append(all, a.keys()...)
		if next = a.token(); next != "" {
			require.NotEmpty(r, a.header.Get("x-ms-continuation-NextPartitionKey"))
		}
		require.LessOrEqual(r, len(all), 4)
	}
	require.Equal(r, []string{"/", "/a", "/b", "p/"}, all)
}
