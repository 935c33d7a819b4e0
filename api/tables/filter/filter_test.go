package filter

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"antipode/api/protocol"
	"antipode/api/tables/edm"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// stamp is 2022-04-13T19:25:37.512524Z.
const stamp geo.Timestamp = 16498779375125240

// today is a version whose requests are served by the rule of today's service for values of another type, paper the last
// one that is served by the rule of the 2009 paper.
const (
	today = protocol.Newest
	paper = protocol.Version20120212
)

// matches parses text and applies it to the entity of body.
func matches(t *testing.T, text, body string) bool {
	t.Helper()
	return matchesOf(t, today, text, body)
}

// matchesOf is matches for a request of version v.
func matchesOf(t *testing.T, v protocol.Version, text, body string) bool {
	t.Helper()
	f, err := Parse(v, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	in, err := json.MinimalMetadata.DecodeEntity([]byte(body), odata.Update)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	ok, _, err := f.Matcher().Match(&tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// Semantics of 11.3, with A.19, A.24, A.41 to A.50.
func TestMatch(t *testing.T) {
	const typed = `{"PartitionKey":"PDC08","RowKey":"1","i":5,"d":5.0,"s":"5","t":true,"f":false,"name":"O'Hara","e":"",` +
		`"l@odata.type":"Edm.Int64","l":"5","w@odata.type":"Edm.DateTime","w":"2020-01-01T00:00:00Z",` +
		`"g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b@odata.type":"Edm.Binary","b":"Cv8=",` +
		`"n@odata.type":"Edm.Double","n":"NaN","inf@odata.type":"Edm.Double","inf":"Infinity","and":1}`
	for _, tc := range []struct {
		filter string
		want   bool
	}{
		{"", true},
		{"  ", true},
		{"i eq 5", true},
		{"d eq 5", true},
		{"l eq 5", true},
		{"s eq 5", false},
		{"s eq '5'", true}, // A.19
		{"i eq 5L", false},
		{"i gt 1.2", false},
		{"d gt 1.2", true},
		{"l gt 1.2", false},
		{"d ge 5L", true},
		{"i ge 3", true}, // A.43, A.44
		{"x ne 1", false},
		{"not (x eq 1)", true},
		{"not x eq 1", true},
		{"s ne 5", true},
		{"s le 5", true},
		{"s ge 5", false},
		{"i ne 6", true}, // A.45
		{"i eq 5 or x eq 1 and x eq 1", true},
		{"(i eq 5 or x eq 1) and x eq 1", false}, // A.47
		{"(i eq 5)and(not(s eq '2'))", true},
		{"((((i eq 5)) ))", true},
		{"i eq(5)", true},
		{"(i) eq 5", true}, // A.48
		{"name eq 'O''Hara'", true},
		{"name eq 'O'", false},
		{"e eq ''", true},
		{"e lt 'a'", true}, // A.49
		{"l eq 5L", true},
		{"d eq 5d", true},
		{"d eq 5.", true},
		{"d eq .5e1", true},
		{"d eq 50E-1D", true},
		{"t eq true", true},
		{"t gt false", true}, // A.50
		{"w eq datetime'2020-01-01T00:00:00Z'", true},
		{"w eq datetime'2020-01-01T01:00:00+01:00'", true},
		{"w lt datetime'2020-01-01T00:00:00.0000001'", true},
		{"s eq datetime'2020-01-01'", false},
		{"g eq guid'C9DA6455-213d-42c9-9a79-3e9149a57833'", true},
		{"b eq X'0aFF'", true},
		{"b eq binary'0aff'", true},
		{"b gt X'0a'", true},
		{"b lt X'0b'", true},
		{"b eq X''", false},
		{"t", true},
		{"f", false},
		{"not f", true},
		{"i", false},
		{"x", false},
		{"not x", true},
		{"PartitionKey", false},
		{"t and not f", true},
		{"true", true},
		{"false or i eq 5", true},
		{"not true", false},
		{"t eq True", true},
		{"5 eq i", true},
		{"4 lt i", true},
		{"4 gt i", false},
		{"6 ge i", true},
		{"5 le i", true},
		{"6 ne i", true},
		{"n eq NaN", false},
		{"n ne NaN", true},
		{"n lt 1.0", false},
		{"n lt '1'", true},
		{"d ne NaN", true},
		{"inf eq INF", true},
		{"inf gt -INF", true},
		{"inf eq 5", false},
		{"PartitionKey ge 'PDC' and PartitionKey lt 'PDD'", true},
		{"PartitionKey eq 1", false},
		{"PartitionKey ne 1", true},
		{"RowKey eq '1'", true}, // A.41
		{"Timestamp eq datetime'2022-04-13T19:25:37.512524Z'", true},
		{"Timestamp gt datetime'2022-04-13T19:25:37.5125241Z'", false},
		{"Timestamp eq '2022'", false},
		{"and eq 1 and i eq 5", true},
		{"I eq 5", false},
		{"i eq 99999999999", false},
		{"d lt 99999999999", true},
		{"i gt -6", true},
		{"i\teq\t5", true},
		{" i eq 5 ", true},
		{"d eq 5e0 and d ne 1E+300", true},
	} {
		if got := matches(t, tc.filter, typed); got != tc.want {
			t.Errorf("%s: %v", tc.filter, got)
		}
	}
	// A.42
	for pk, want := range map[string]bool{"Football_7990_01": true, "Football_7991_03": false, "Football_7991": true, "Football_7990": false} {
		if got := matches(t, "PartitionKey le 'Football_7991' and PartitionKey gt 'Football_7990'", `{"PartitionKey":"`+pk+`"}`); got != want {
			t.Errorf("%s: %v", pk, got)
		}
	}
	f, err := Parse(today, "a eq 1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Matcher().Match(&tables.Entity{Props: []byte{1, 1}}); !errors.Is(err, entity.ErrMalformed) {
		t.Errorf("malformed list: %v", err)
	}
}

// Errors of 11.2, with A.46 and A.49.
func TestParseFilterErrors(t *testing.T) {
	in, not := storageerr.InvalidInput, storageerr.NotImplemented
	at := func(n int, text string) storageerr.Row {
		return in.Saying("Syntax error at position " + strconv.Itoa(n) + " in '" + text + "'.")
	}
	deep := strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300)
	for text, want := range map[string]storageerr.Row{
		"a eq b": not, "1 eq 1": not, "x eq null": in, "x ne null": in, "null eq x": in,
		"x lt null":   in.Saying("The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported."),
		"null lt x":   in.Saying("The operator 'GreaterThan' is not supported for the 'null' literal; only equality checks are supported."),
		"aaa bbb ccc": at(7, "aaa bbb ccc"), "😀": at(2, "😀"), "é é é": at(3, "é é é"),
		"startswith(a,'b')": not, "substringof('b',a) eq true": not, "length (a) eq 1": not, "a add 1 eq 2": not, "a in (1)": not, "a in (1,2) and b": not,
		// What cannot be parsed is a fault, whatever stands beside it (11.2).
		"startswith(a,'b'": at(16, "startswith(a,'b'"), "startswith(a,'b') eq": at(20, "startswith(a,'b') eq"), "a eq b c": at(8, "a eq b c"),
		"a add 1 eq": at(10, "a add 1 eq"), "a in (1": at(7, "a in (1"), "it/": at(3, "it/"), "it/a b": at(6, "it/a b"), "f(a) or x eq 'b": at(15, "f(a) or x eq 'b"),
		"it/a eq 1": not, "tags/any(t: t eq 'x')": not, "(a eq 1) eq true": not, "a eq length('x')": not,
		"a eq": at(4, "a eq"), "(a eq 1": at(7, "(a eq 1"), "a eq 1)": at(7, "a eq 1)"), "a eq 'x": at(7, "a eq 'x"), "()": at(2, "()"),
		"x eq 1'bad'": at(7, "x eq 1'bad'"), "a eq 1 eq 2": at(9, "a eq 1 eq 2"), "a eq 5x": at(7, "a eq 5x"), "a eq 'b'and c": at(8, "a eq 'b'and c"),
		"a eq -": at(6, "a eq -"), "a eq .": at(6, "a eq ."), "a eq 1e": at(7, "a eq 1e"), "a eq $": at(6, "a eq $"), "a EQ 1": at(4, "a EQ 1"),
		"a eq time'x'": at(12, "a eq time'x'"), "a eq \"b\"": at(6, "a eq \"b\""), "not": at(3, "not"),
		"a eq guid'zz'": in, "a eq datetime'x'": in, "a eq X'abc'": in, "a eq X'zz'": in, "a eq 99999999999999999999": in, "a eq 1e999": in,
		"5": in, "'x'": in, "null": in, "a eq 1 and 5": in, "not 5": in, "a eq 1 or (null)": in,
		"a eq '\xff'": in, deep: in, strings.Repeat("not ", 300) + "a": in, strings.Repeat("a or ", 20000) + "a": in,
	} {
		f, err := Parse(today, text)
		var row storageerr.Row
		if !errors.As(err, &row) || row != want {
			t.Errorf("%.40q: %v, %v; want %v", text, f, err, want)
		}
	}
	for _, text := range []string{
		strings.Repeat("(", 100) + "a eq 1" + strings.Repeat(")", 100),
		strings.Repeat("not(", 100) + "a" + strings.Repeat(")", 100),
		"a" + strings.Repeat(" and a eq 'x'", 1000),
	} {
		if _, err := Parse(today, text); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestMatchTable(t *testing.T) {
	for _, tc := range []struct {
		filter string
		want   []string
	}{
		{"", []string{"Alpha", "beta", "Blogs"}},
		{"TableName eq 'blogs'", []string{"Blogs"}},
		{"TableName ge 'B' and TableName lt 'C'", []string{"beta", "Blogs"}},
		{"not (TableName eq 'ALPHA') and TableName le 'BETA'", []string{"beta"}},
		{"TableName eq 1 or other eq 'x' or TableName", nil},
		{"TableName eq 'alpha' or TableName eq 'blogs'", []string{"Alpha", "Blogs"}},
		{"true", []string{"Alpha", "beta", "Blogs"}},
		{"TableName ne 1", []string{"Alpha", "beta", "Blogs"}},
		{"TableName ne 1 and TableName gt 'b'", []string{"beta", "Blogs"}},
		{"not (TableName le 1) or other ne 1", nil},
	} {
		f, err := Parse(today, tc.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"Alpha", "beta", "Blogs"} {
			if ok, _ := f.MatchTable(name); !ok {
				continue
			}
			got = append(got, name)
			if b := f.TableBounds(); strings.ToLower(name) < b.Low || b.Bounded && strings.ToLower(name) >= b.High {
				t.Errorf("%s: %s is outside %+v", tc.filter, name, b)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.filter, got, tc.want)
		}
	}
}

// drawKey draws few short keys, around the places where byte order is not the order.
func drawKey(t *rapid.T, label string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]rune{'a', 'b', 0xe000, 0x1f600}), 0, 2).Draw(t, label))
}

func drawNode(t *rapid.T, depth int) *node {
	kind := rapid.SampledFrom([]nodeKind{nodeCompare, nodeCompare, nodeCompare, nodeAnd, nodeAnd, nodeOr, nodeNot, nodeProperty, nodeLiteral}).Draw(t, "kind")
	if depth == 0 && kind < nodeCompare {
		kind = nodeCompare
	}
	name := rapid.SampledFrom([]string{entity.PartitionKey, entity.PartitionKey, entity.RowKey, entity.Timestamp, "x", "x"}).Draw(t, "name")
	n := &node{kind: kind}
	switch kind {
	case nodeAnd, nodeOr:
		for range rapid.IntRange(2, 4).Draw(t, "kids") {
			n.kids = append(n.kids, drawNode(t, depth-1))
		}
	case nodeNot:
		n.kids = []*node{drawNode(t, depth-1)}
	case nodeProperty:
		n.name = name
	case nodeLiteral:
		n.lit = boolLiteral(rapid.Bool().Draw(t, "constant"))
	case nodeCompare:
		n.name = name
		n.op = rapid.SampledFrom([]comparison{opEq, opNe, opGt, opGe, opLt, opLe}).Draw(t, "op")
		n.lit = literal{typ: entity.String, text: drawKey(t, "literal")}
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			n.lit = literal{typ: entity.Int32, num: 1}
		}
	}
	return n
}

// drawVersion draws a version of either rule for values of another type.
func drawVersion(t *rapid.T) protocol.Version {
	return rapid.SampledFrom([]protocol.Version{today, paper}).Draw(t, "version")
}

// filterOf makes a drawn tree the filter of a request of version v: it gives the properties their slots, in the order of its
// text, and the comparisons what they are for a value of another type.
func filterOf(v protocol.Version, root *node) *Filter {
	var p filterParser
	var walk func(n *node)
	walk = func(n *node) {
		if n.kind == nodeProperty || n.kind == nodeCompare {
			n.slot = p.slotOf(n.name)
		}
		n.unlike = n.kind == nodeCompare && n.op.holdsUnlike(v)
		for _, k := range n.kids {
			walk(k)
		}
	}
	walk(root)
	return &Filter{root: root, names: p.names, places: p.places}
}

// text prints a tree as a filter, with parentheses around everything.
func text(n *node) string {
	var parts []string
	for _, k := range n.kids {
		parts = append(parts, "("+text(k)+")")
	}
	switch n.kind {
	case nodeAnd:
		return strings.Join(parts, " and ")
	case nodeOr:
		return strings.Join(parts, " or ")
	case nodeNot:
		return "not " + parts[0]
	case nodeProperty:
		return n.name
	case nodeLiteral:
		return literalText(n.lit)
	}
	operators := []string{"eq", "ne", "gt", "ge", "lt", "le"}
	if n.name == "not" { // A property only on the right: on the left it would negate.
		return literalText(n.lit) + " " + operators[n.op.mirrored()] + " " + n.name
	}
	return n.name + " " + operators[n.op] + " " + literalText(n.lit)
}

func literalText(l literal) string {
	switch l.typ {
	case entity.String:
		return "'" + strings.ReplaceAll(l.text, "'", "''") + "'"
	case entity.Int32:
		return strconv.FormatInt(l.num, 10)
	case entity.Int64:
		return strconv.FormatInt(l.num, 10) + "L"
	case entity.Boolean:
		return strconv.FormatBool(l.num != 0)
	case entity.DateTime:
		return "datetime'" + string(edm.AppendDateTime(nil, l.num, ":")) + "'"
	case entity.GUID:
		return "guid'" + string(edm.AppendGUID(nil, [16]byte([]byte(l.text)))) + "'"
	case entity.Binary:
		return "X'" + hex.EncodeToString([]byte(l.text)) + "'"
	}
	switch v := math.Float64frombits(uint64(l.num)); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	default:
		return string(edm.AppendDouble(nil, v))
	}
}

// What is printed parses to the same tree.
func TestFilterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t, 4)
		filterOf(today, n)
		f, err := Parse(today, text(n))
		if err != nil || !reflect.DeepEqual(f.root, n) {
			t.Fatalf("%s parses to %s, %v", text(n), text(f.root), err)
		}
	})
}

// everyType has one property of every type, and the odd values of Double.
const everyType = `{"PartitionKey":"p'","RowKey":"r \"q\"","Rating":9,"Big@odata.type":"Edm.Int64","Big":"9007199254740993",` +
	`"Text":"a\tb","D":1.0,"N@odata.type":"Edm.Double","N":"NaN","T":true,"W@odata.type":"Edm.DateTime","W":"2020-01-01T01:02:00Z",` +
	`"G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","B@odata.type":"Edm.Binary","B":"AAH/"}`

// Any text gives a filter or a row; a filter prints to one that parses the same, and it
// can be applied and bounded.
func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{
		"aaa bbb ccc", "(a eq 1)and(not(b eq 2.5e-3d))", "w ge datetime'2020-01-01' or g eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
		"PartitionKey eq 'O''Hara' and RowKey lt 'b' or x ne X'0aff'", "5L lt a and not true", "startswith(a,'b')", "a eq -INF",
	} {
		f.Add(seed)
	}
	in, err := json.MinimalMetadata.DecodeEntity([]byte(everyType), odata.Insert)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parsed, err := Parse(today, s)
		if err != nil {
			if _, ok := storageerr.Of(err); !ok {
				t.Fatalf("not a row: %v", err)
			}
			return
		}
		want, _, err := parsed.Matcher().Match(&tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props})
		if err != nil {
			t.Fatal(err)
		}
		plan := parsed.Plan()
		left, _, _ := plan.Rest.Matcher().Match(&tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props})
		if got := plan.Keys.Contains(in.PK, in.RK) && left; got != want {
			t.Fatalf("%q: %v by its plan, %v by match", s, got, want)
		}
		if parsed == nil || len(s) > 2000 || strings.Contains(s, "datetime'0001") || strings.Contains(s, "datetime'9999") {
			return // An offset may lead to a year that has no text.
		}
		again, err := Parse(today, text(parsed.root))
		if err != nil && strings.Count(text(parsed.root), "(") < filterDepthMax || err == nil && text(again.root) != text(parsed.root) {
			t.Fatalf("%q prints as %q: %v", s, text(parsed.root), err)
		}
	})
}
