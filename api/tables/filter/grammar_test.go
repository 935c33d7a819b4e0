package filter

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// grammarRow is a filter with what it must do: match the entity of TestSection11 or not, or be
// refused.
type grammarRow struct {
	filter string
	match  bool
	err    error
}

func yes(filter string) grammarRow { return grammarRow{filter: filter, match: true} }
func no(filter string) grammarRow  { return grammarRow{filter: filter} }

func invalid(filter string) grammarRow {
	return grammarRow{filter: filter, err: storageerr.InvalidInput}
}

func notBuilt(filter string) grammarRow {
	return grammarRow{filter: filter, err: storageerr.NotImplemented}
}

// syntax is a filter that the grammar refuses at a character.
func syntax(filter string, at int) grammarRow {
	message := "Syntax error at position " + strconv.Itoa(at) + " in '" + filter + "'."
	return grammarRow{filter: filter, err: storageerr.InvalidInput.Saying(message)}
}

// nullOrder is a filter that compares null with an order operator.
func nullOrder(filter, operator string) grammarRow {
	message := "The operator '" + operator + "' is not supported for the 'null' literal; only equality checks are supported."
	return grammarRow{filter: filter, err: storageerr.InvalidInput.Saying(message)}
}

// Every row of the tables of section 11.1 to 11.3, by its name, and the rules of the grammar.
//
// Capability: Clients: `$filter` of tables.
func TestSection11(t *testing.T) {
	const entity = `{"PartitionKey":"Football_7991_03","RowKey":"r","A":1,"i":5,"neg":-5,"d":5.5,"five":5.0,"s":"5","t":true,"f":false,` +
		`"name":"O'Hara","e":"","eq":1,"or":true,"café":1,"_x1":1,` +
		`"big@odata.type":"Edm.Int64","big":"3000000000","l@odata.type":"Edm.Int64","l":"5",` +
		`"w@odata.type":"Edm.DateTime","w":"2020-01-01T01:02:03.1234567Z",` +
		`"g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b@odata.type":"Edm.Binary","b":"Cv8=",` +
		`"n@odata.type":"Edm.Double","n":"NaN","inf@odata.type":"Edm.Double","inf":"Infinity","ninf@odata.type":"Edm.Double","ninf":"-Infinity"}`
	for name, rows := range map[string][]grammarRow{
		// 11.1, rule by rule.
		"filter":          {yes(" i eq 5\t"), yes(""), yes(" \t"), syntax("i eq 5\n", 7)},
		"orExpr":          {yes("i eq 6 or i eq 5"), yes("(f)or(t)"), syntax("i eq 5 or", 9), syntax("t ort", 5)},
		"andExpr":         {yes("i eq 5 and t"), no("t and f"), yes("(t)and(t)"), no("and")},
		"notExpr":         {yes("not f"), yes("not(f)"), yes("not not t"), no("not ( not f )"), syntax("not", 3)},
		"compare":         {yes("(i)eq(5)"), yes("i\teq  5"), syntax("i eq5", 5), syntax("i=5", 1), syntax("i == 5", 3)},
		"cmpOp":           {yes("i eq 5"), no("i ne 5"), yes("i gt 4"), yes("i ge 5"), yes("i lt 6"), yes("i le 5"), syntax("i is 5", 4)},
		"words":           {syntax("i eq 5 and and i eq 5", 16), syntax("(i eq 5) and and (i eq 5)", 18), syntax("(i eq 5) or or (i eq 5)", 16), syntax("(i eq 5) and or (i eq 5)", 17), syntax("i eq eq (5)", 9), syntax("i eq add (5)", 10), syntax("i eq in (5)", 9), syntax("i eq has (5)", 10), syntax("t and ne('x')", 9), yes("or and t"), yes("eq eq 1"), yes("not(not(t))")},
		"property":        {yes("café eq 1"), yes("_x1 eq 1"), no("I eq 5"), syntax("a-b eq 1", 1), syntax("$a eq 1", 1), syntax("1a eq 1", 2)},
		"string":          {yes("e eq ''"), yes("name eq 'O''Hara'"), syntax("name eq 'O'Hara'", 11), syntax("e eq '", 6), syntax(`e eq "x"`, 6)},
		"datetime":        {yes("w ge datetime'2020-01-01'"), yes("w eq datetime'2020-01-01T01:02:03.1234567'"), syntax("w eq DateTime'2020-01-01'", 25)},
		"guid":            {yes("g eq guid'C9DA6455-213D-42c9-9a79-3e9149a57833'"), invalid("g eq guid'c9da6455213d42c99a793e9149a57833'")},
		"binary":          {yes("b eq X'0aFF'"), yes("b eq binary'0AfF'"), no("b eq X''"), syntax("b eq x'0aff'", 12), syntax("b eq Binary'0aff'", 17)},
		"int32":           {yes("i eq 5"), yes("neg eq -5"), yes("i eq 005"), syntax("i eq +5", 6), syntax("i eq - 5", 6)},
		"int64":           {yes("l eq 5L"), yes("l eq 5l"), no("i eq 5L"), syntax("l eq 5LL", 8)},
		"double":          {yes("d eq 5.5"), yes("five eq 5."), yes("five eq 5d"), yes("five eq 5.0D"), yes("d eq .55e1"), yes("d eq 55E-1"), yes("d eq 0.55e+1d"), yes("inf eq INF"), yes("ninf eq -INF"), syntax("d eq .", 6), syntax("d eq 5e", 7), syntax("d eq -NaN", 6)},
		"bool":            {yes("t eq true"), yes("f eq false"), yes("true"), no("false")},
		"ws":              {yes("i\t\teq \t5"), syntax("i eq 5and t", 7), yes("(i eq 5)and(not(s eq '2'))")},
		"Precedence":      {yes("A eq 1 or A eq 2 and A eq 3"), no("(A eq 1 or A eq 2) and A eq 3"), yes("not i eq 1"), no("not i eq 5"), yes("not f and t"), yes("not (f and f) or f")},
		"Case":            {yes("t eq TRUE"), yes("f eq False"), yes("eq eq 1"), yes("or"), syntax("i EQ 5", 4), syntax("t AND t", 5)},
		"Integer over":    {yes("big eq 3000000000"), yes("big eq 3000000000L"), no("i eq 3000000000"), yes("neg gt -2147483648"), invalid("i eq 9223372036854775808"), yes("l lt 9223372036854775807")},
		"Parenthesised":   {yes("(((PartitionKey eq 'Football_7991_03') and (RowKey ge 'b')) and (i eq 5))"), yes(strings.Repeat("(", 100) + "i eq 5" + strings.Repeat(")", 100)), yes(strings.Repeat("not (", 100) + "i eq 5" + strings.Repeat(")", 100)), invalid(strings.Repeat("(", filterDepthMax+1) + "i" + strings.Repeat(")", filterDepthMax+1))},
		"Length":          {yes("i eq 5" + strings.Repeat(" and i eq 5", 60)), no("i eq 6" + strings.Repeat(" or i eq 6", 5000)), invalid("i eq 5" + strings.Repeat(" or i eq 5", 7000))},
		"Property prefix": {notBuilt("T/i eq 5"), notBuilt("it/i eq 5")},

		// 11.2.
		"property op literal":      {yes("i eq 5"), yes("RowKey eq 'r'")},
		"literal op property":      {yes("5 eq i"), yes("4 lt i"), no("4 gt i"), yes("6 ge i"), yes("5 le i"), yes("6 ne i")},
		"property op property":     {notBuilt("i eq l"), notBuilt("i eq i")},
		"literal op literal":       {notBuilt("1 eq 1"), notBuilt("'a' lt 'b'"), notBuilt("true eq true")},
		"bare Boolean property":    {yes("t"), no("f"), yes("not f"), yes("t and not f")},
		"bare other property":      {no("i"), no("s"), no("absent"), no("PartitionKey"), no("Timestamp"), yes("not absent")},
		"bare true / false":        {yes("true"), no("false"), no("not true"), yes("false or t"), no("true and f")},
		"x eq null":                {invalid("i eq null"), invalid("i ne null"), invalid("null eq i"), invalid("absent ne null"), invalid("t and i eq null")},
		"x lt null":                {nullOrder("i lt null", "LessThan"), nullOrder("i le null", "LessThanOrEqual"), nullOrder("i gt null", "GreaterThan"), nullOrder("i ge null", "GreaterThanOrEqual"), nullOrder("null lt i", "GreaterThan")},
		"functions":                {notBuilt("startswith(s,'5')"), notBuilt("substringof('5',s)"), notBuilt("length(s) eq 1"), notBuilt("year(w) eq 2020"), notBuilt("not startswith(s,'x')"), notBuilt("true or startswith(s,'5')"), notBuilt("5 eq length(s)")},
		"arithmetic":               {notBuilt("i add 1 eq 6"), notBuilt("i sub 1 eq 4"), notBuilt("i mul 2 eq 10"), notBuilt("i div 5 eq 1"), notBuilt("i mod 2 eq 1"), notBuilt("6 eq i add 1")},
		"in, any/all, casts":       {notBuilt("i in (5,6)"), notBuilt("s/any(x: x eq '5')"), notBuilt("s/all(x: x eq '5')"), notBuilt("cast(i, 'Edm.Int64') eq 5L"), notBuilt("isof(i, 'Edm.Int32')")},
		"anything else":            {syntax("aaa bbb ccc", 7), syntax("é é é", 3), syntax("😀😀 eq 1", 2), syntax("(i eq 5", 7), syntax("i eq 5)", 7), syntax("()", 2), syntax("i eq", 4), syntax("i eq 5 eq 6", 9), syntax("i eq 5 i eq 5", 8), syntax("startswith(s,'5'", 16), invalid("5"), invalid("'x'"), invalid("null"), invalid("t and 5")},
		"x eq 1'bad'":              {syntax("x eq 1'bad'", 7)},
		"malformed typed literals": {invalid("g eq guid'zz'"), invalid("w eq datetime'x'"), invalid("w eq datetime''"), invalid("w eq datetime'2020-02-30'"), invalid("b eq X'abc'"), invalid("b eq binary'zz'"), invalid("d eq 1e999"), invalid("s eq '\xff'")},

		// 11.3: types that compare, and the rules below.
		"Int32":             {yes("i eq 5"), no("i eq 5L"), no("i eq 5.0"), no("i eq '5'"), yes("i ne 6L"), yes("i lt 6.0")},
		"Int64":             {yes("l eq 5L"), yes("l eq 5"), no("l eq 5.0"), yes("l lt 6.0"), no("l ge 5.0")},
		"Double":            {yes("d gt 5.4"), yes("d gt 5"), yes("d gt 5L"), yes("five eq 5L"), no("five eq '5'")},
		"the same type":     {yes("s eq '5'"), no("s eq 5"), no("t eq 1"), no("t eq 'true'"), no("w eq '2020-01-01'"), no("g eq 'c9da6455-213d-42c9-9a79-3e9149a57833'"), no("b eq '0aff'")},
		"Type mismatch":     {no("i gt 1.2"), yes("d gt 1.2"), no("not (d gt 1.2)"), yes("not (i gt 1.2)")},
		"mismatched ne":     {yes("s ne 5"), yes("s lt 5"), yes("s le 5"), no("s gt 5"), no("s ge 5"), no("s eq 5")},
		"Property absent":   {no("absent eq 1"), no("absent ne 1"), yes("not (absent eq 1)"), yes("not (absent ne 1)")},
		"String":            {no("name eq 'o''hara'"), yes("name lt 'a'"), yes("e lt ' '"), yes("e le ''"), no("e lt ''")},
		"Prefix search":     {yes("PartitionKey ge 'Football' and PartitionKey lt 'Footballa'"), no("PartitionKey ge 'Footballa' and PartitionKey lt 'Footballb'")},
		"Boolean":           {yes("f lt true"), yes("t gt false"), no("t lt true")},
		"Guid":              {no("g lt guid'c9da6455-213d-42c9-9a79-3e9149a57833'"), yes("g le guid'c9da6455-213d-42c9-9a79-3e9149a57833'"), yes("g ne guid'00000000-0000-0000-0000-000000000000'")},
		"Binary":            {yes("b gt X'0a'"), yes("b lt X'0aff00'"), yes("b lt X'0b'")},
		"DateTime":          {yes("w eq datetime'2020-01-01T02:02:03.1234567+01:00'"), yes("w gt datetime'2020-01-01T01:02:03.1234566Z'"), yes("w lt datetime'2020-01-01T01:02:03.1234568Z'"), yes("w gt datetime'0001-01-01T00:00:00Z'")},
		"Double NaN":        {no("n eq NaN"), no("n lt 1.0"), no("n ge NaN"), yes("n ne NaN"), yes("n ne 1.0"), yes("d ne NaN"), no("d lt NaN")},
		"PK, RK":            {no("PartitionKey eq 1"), yes("RowKey ne 1"), yes("RowKey lt 5L"), yes("not (RowKey eq 1)")},
		"Timestamp":         {yes("Timestamp eq datetime'2022-04-13T19:25:37.512524Z'"), no("Timestamp eq '2022'"), yes("Timestamp ne 5"), yes("Timestamp gt datetime'2022-04-13'")},
		"Does not depend":   {no("PartitionKey le 'Football_7991' and PartitionKey gt 'Football_7990'"), yes("PartitionKey le 'Football_7992' and PartitionKey gt 'Football_7991'")},
		"Equality on both":  {yes("PartitionKey eq 'Football_7991_03' and RowKey eq 'r'"), no("PartitionKey eq 'Football_7991_03' and RowKey eq 'none'")},
		"Characters of 4.4": {no("RowKey eq 'a/b\\c#d?e'"), no("RowKey eq '\u0001\u0085'")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, row := range rows {
				if row.err == nil {
					require.Equal(t, row.match, matches(t, row.filter, entity), "%.80q", row.filter)
					continue
				}
				_, err := Parse(today, row.filter)
				var got storageerr.Row
				require.True(t, errors.As(err, &got), "%.80q: %v", row.filter, err)
				require.Equal(t, row.err, got, "%.80q", row.filter)
			}
		})
	}
}

// The Tables row of 11.3: only TableName exists, and compares without case.
//
// Capability: Clients: `$filter` of tables.
func TestSection11Tables(t *testing.T) {
	for filter, want := range map[string]bool{
		"TableName eq 'BLOGS'": true, "TableName gt 'blogr'": true, "TableName lt 'blogs'": false, "TableName eq 1": false,
		"tablename eq 'Blogs'": false, "PartitionKey eq 'Blogs'": false, "not (PartitionKey eq 'Blogs')": true, "TableName": false,
	} {
		f, err := Parse(today, filter)
		require.NoError(t, err)
		got, _ := f.MatchTable("Blogs")
		require.Equal(t, want, got, filter)
	}
}
