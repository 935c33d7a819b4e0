package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// Cases 39 to 45: order and comparisons.
func queryCases() []testCase {
	return []testCase{
		{39, "order of partition keys", orderOfPartitions},
		{40, "order of row keys", orderOfRows},
		{41, "prefix", prefix},
		{42, "odd bounds", oddBounds},
		{43, "a literal is not narrowed", notNarrowed},
		{44, "a literal is widened", widened},
		{45, "absent properties", absentProperties},
	}
}

// found requires a filter to find the rows with these keys, in this order, and no others.
func (r *rig) found(filter string, keys ...string) {
	r.Helper()
	if keys == nil {
		keys = []string{}
	}
	require.Equal(r, keys, r.read(r.filtered(filter)).keys(), filter)
}

func orderOfPartitions(r *rig) {
	r.create()
	for _, pk := range []string{"b", "B", "a1", "a10", "a2", "", "\uffee", "😀"} {
		r.added(pk, "r", "")
	}
	// By units of UTF-16: those of the emoji are below U+FFEE (section 4.5).
	require.Equal(r, []string{"/r", "B/r", "a1/r", "a10/r", "a2/r", "b/r", "😀/r", "\uffee/r"}, r.read("/"+r.table).keys())
}

func orderOfRows(r *rig) {
	r.create()
	r.added("p", "92", "")
	r.added("p", "10000", "")
	require.Equal(r, []string{"p/10000", "p/92"}, r.read("/"+r.table).keys())
	r.found("RowKey lt '92'", "p/10000")
	r.added("p", "00092", "")
	require.Equal(r, []string{"p/00092", "p/10000", "p/92"}, r.read("/"+r.table).keys())
	r.found("PartitionKey eq 'p' and RowKey ge '00092' and RowKey lt '10000'", "p/00092")
}

func prefix(r *rig) {
	r.create()
	for _, pk := range []string{"PDB", "PDC", "PDC08", "PDCa", "PDD", "pdc"} {
		r.added(pk, "r", "")
	}
	r.found("PartitionKey ge 'PDC' and PartitionKey lt 'PDD'", "PDC/r", "PDC08/r", "PDCa/r")
}

func oddBounds(r *rig) {
	r.create()
	r.added("Football_7990_01", "r", "")
	r.added("Football_7991_03", "r", "")
	r.found("PartitionKey le 'Football_7991' and PartitionKey gt 'Football_7990'", "Football_7990_01/r")
}

// rated inserts the rows A and B of cases 43 and 44.
func (r *rig) rated() {
	r.create()
	r.added("p", "A", `,"Rating":3`)
	r.added("p", "B", `,"Rating":3.0`)
}

func notNarrowed(r *rig) {
	r.rated()
	r.found("Rating gt 1.2", "p/B")
	r.found("1.2 lt Rating", "p/B") // Mirrored.
	r.found("Rating ne ''", "p/A", "p/B")
	r.found("Rating lt 1.2", "p/A")
}

func widened(r *rig) {
	r.rated()
	r.found("Rating ge 3", "p/A", "p/B")
	r.found("Rating ge 3L", "p/B")
	r.found("Rating lt 4 and Rating gt 2", "p/A", "p/B")
}

func absentProperties(r *rig) {
	r.create()
	r.added("p", "without", `,"y":1`)
	r.added("p", "with", `,"x":2`)
	r.found("x ne 1", "p/with")
	r.found("not (x eq 1)", "p/with", "p/without")
	r.found("not (x eq 2)", "p/without")
	r.found("x ne ''", "p/with")
}

// Cases 46 to 51: the language of filters.
func filterCases() []testCase {
	return []testCase{
		{46, "what a filter may not say", refusedFilters},
		{47, "and binds closer than or", precedence},
		{48, "no blanks beside parentheses", withoutBlanks},
		{49, "quotes in a filter", quotesInFilter},
		{50, "typed literals", typedLiterals},
		{51, "plus signs for blanks", plusSigns},
	}
}

func refusedFilters(r *rig) {
	r.create()
	r.added("p", "r", `,"a":"b","x":1`)
	const onlyEquality = "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported."
	for _, c := range []struct {
		filter, code, message string
		status                int
	}{
		{"a eq b", "NotImplemented", notImplemented, http.StatusNotImplemented},
		{"1 eq 1", "NotImplemented", notImplemented, http.StatusNotImplemented},
		{"x eq null", "InvalidInput", invalidInput, http.StatusBadRequest},
		{"x ne null", "InvalidInput", invalidInput, http.StatusBadRequest},
		{"x lt null", "InvalidInput", onlyEquality, http.StatusBadRequest},
		{"aaa bbb ccc", "InvalidInput", "Syntax error at position 7 in 'aaa bbb ccc'.", http.StatusBadRequest},
		{"startswith(a,'b')", "NotImplemented", notImplemented, http.StatusNotImplemented},
		{"substringof('b',a) eq true", "NotImplemented", notImplemented, http.StatusNotImplemented},
		{"x add 1 eq 2", "NotImplemented", notImplemented, http.StatusNotImplemented},
		{"g eq guid'zz'", "InvalidInput", "", http.StatusBadRequest},
		{"w eq datetime'x'", "InvalidInput", "", http.StatusBadRequest},
		{"b eq X'abc'", "InvalidInput", "", http.StatusBadRequest},
	} {
		a := r.read(r.filtered(c.filter)).fails(c.status, c.code, c.message)
		require.Empty(r, a.header.Get("Cache-Control"), "an early failure has none")
	}
}

func precedence(r *rig) {
	r.create()
	r.added("p", "a", `,"A":1,"B":2,"C":2`)
	r.added("p", "b", `,"A":2,"B":1,"C":2`)
	r.added("p", "bc", `,"A":2,"B":1,"C":1`)
	r.found("A eq 1 or B eq 1 and C eq 1", "p/a", "p/bc")
	r.found("(A eq 1 or B eq 1) and C eq 1", "p/bc")
	r.found("not A eq 1 and C eq 1", "p/bc")
}

func withoutBlanks(r *rig) {
	r.create()
	r.added("p", "both", `,"a":1,"b":2`)
	r.added("p", "one", `,"a":1,"b":3`)
	r.found("(a eq 1)and(not(b eq 2))", "p/one")
	r.found(strings.Repeat("(", 100)+"a eq 1"+strings.Repeat(")", 100)+"and(b eq 2)", "p/both")
	r.found("(((PartitionKey eq 'p') and (RowKey ge 'b')) and (b eq 3))", "p/one")
}

func quotesInFilter(r *rig) {
	r.create()
	r.added("p", "r", `,"name":"O'Hara"`)
	r.found("name eq 'O''Hara'", "p/r")
	for _, filter := range []string{"name eq 'O''Hara", "name eq 'O'Hara'", "name eq '"} {
		r.read(r.filtered(filter)).fails(http.StatusBadRequest, "InvalidInput", "")
	}
}

func typedLiterals(r *rig) {
	r.create()
	r.added("p", "all", `,"l@odata.type":"Edm.Int64","l":"1","d":1.5,"t":true,"w@odata.type":"Edm.DateTime","w":"2020-01-01T01:02:00.12Z"`+
		`,"g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b@odata.type":"Edm.Binary","b":"Cv8=","i":1,"s":"1"`)
	r.added("p", "none", `,"l":2,"d":2.5,"t":false,"w":"2020-01-01T01:02:00.12Z","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b":"Cv8=","i":2,"s":"2"`)
	for _, literal := range []string{
		"l eq 1L", "d eq 1.5", "d eq 15e-1", "t eq true", "t", "w eq datetime'2020-01-01T01:02:00.12Z'", "w eq datetime'2020-01-01T01:02:00.12'",
		"g eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "g eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", "b eq X'0aFF'", "b eq binary'0aff'",
		"i eq 1", "s eq '1'", "not (t eq false)",
	} {
		r.found(literal, "p/all")
	}
}

func plusSigns(r *rig) {
	r.create()
	r.added("x", "r", `,"v":"1 + 1"`)
	r.added("y", "r", `,"v":"2"`)
	for _, query := range []string{
		"$filter=PartitionKey+eq+%27x%27", "$filter=PartitionKey%20eq%20'x'", "%24filter=PartitionKey+eq%20%27x'", "$filter=v+eq+'1+%2B+1'",
	} {
		require.Equal(r, []string{"x/r"}, r.read("/"+r.table+"()?"+query).keys(), query)
	}
}

// Cases 52 and 53: the other options of a query.
func optionCases() []testCase {
	return []testCase{
		{52, "$select", selected},
		{53, "$top", top},
	}
}

func selected(r *rig) {
	r.create()
	tag := r.added("p", "r", `,"a":1,"b":2`).tag()
	for _, list := range []string{"a,zz", "a,%20zz"} {
		a := r.read("/" + r.table + "()?$select=" + list).is(http.StatusOK)
		requireJSONText(r, fmt.Sprintf(`{"odata.metadata":"%s$metadata#%s&$select=%s","value":[{"odata.etag":%s,"a":1,"zz":null}]}`,
			r.base(), r.table, list, quoted(tag)), a.body)
		a = r.read(r.path("p", "r") + "?$select=" + list).is(http.StatusOK)
		require.Equal(r, tag, a.tag())
		require.Equal(r, map[string]any{"a": 1., "zz": nil}, custom(a))
		require.Equal(r, tag, a.decoded()["odata.etag"])
		require.NotContains(r, a.decoded(), "PartitionKey")
	}
	for _, all := range []string{"", "*", "%20"} {
		require.Equal(r, map[string]any{"a": 1., "b": 2.}, custom(r.read(r.path("p", "r")+"?$select="+all).is(http.StatusOK)))
	}
	a := r.read("/"+r.table+"()?$select=a,zz", "X-Ms-Version", "2011-08-18", "Accept", "application/atom+xml").is(http.StatusOK)
	require.Regexp(r, `<m:properties><d:a m:type="Edm\.Int32">1</d:a><d:zz m:null="true" ?/></m:properties>`, a.body)
	require.Contains(r, a.body, `<entry m:etag="`+strings.ReplaceAll(tag, `"`, "&quot;")+`">`)
	r.read("/"+r.table+"()?$select=a", "X-Ms-Version", "2009-09-19", "Accept", "application/atom+xml").fails(http.StatusBadRequest, "InvalidInput", "")

	// A filter looks at the whole entity, and keys are there where they are named.
	a = r.read(r.filtered("b eq 2")+"&$select=RowKey", "Accept", "application/json;odata=nometadata").is(http.StatusOK)
	requireJSONText(r, `{"value":[{"RowKey":"r"}]}`, a.body)
}

func top(r *rig) {
	r.create()
	for _, rk := range []string{"a", "b"} {
		r.added("p", rk, "")
	}
	a := r.read("/" + r.table + "()?$top=0")
	require.Empty(r, a.keys())
	requireJSONText(r, `{"odata.metadata":"`+r.base()+`$metadata#`+r.table+`","value":[]}`, a.body)
	for _, top := range []string{"-1", "1001", "x"} {
		r.read("/"+r.table+"()?$top="+top).fails(http.StatusBadRequest, "InvalidInput", invalidInput)
		r.do("GET", "/Tables?$top="+top, "").fails(http.StatusBadRequest, "InvalidInput", invalidInput)
	}
	require.Equal(r, []string{"p/a", "p/b"}, r.read("/"+r.table+"()?$top=1000").keys())
	require.Equal(r, []string{"p/a"}, r.read("/"+r.table+"()?$top=1").keys())
}
