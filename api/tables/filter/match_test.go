package filter

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/protocol"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// literalsOf has the types of literals that compare with a stored value of a type, by the table of 11.3.
func literalsOf(stored entity.Type) []entity.Type {
	switch stored {
	case entity.Int64:
		return []entity.Type{entity.Int64, entity.Int32}
	case entity.Double:
		return []entity.Type{entity.Double, entity.Int32, entity.Int64}
	}
	return []entity.Type{stored}
}

// naive is the rule of 11.3 in a request of version v without slots: it searches the properties for each node.
func naive(v protocol.Version, n *node, pk, rk string, props []byte) bool {
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !naive(v, k, pk, rk, props) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if naive(v, k, pk, rk, props) {
				return true
			}
		}
		return false
	case nodeNot:
		return !naive(v, n.kids[0], pk, rk, props)
	case nodeLiteral:
		return n.lit.num != 0
	}
	p, found, _ := entity.Find(props, n.name)
	switch n.name {
	case entity.PartitionKey:
		p, found = entity.Property{Type: entity.String, Value: []byte(pk)}, true
	case entity.RowKey:
		p, found = entity.Property{Type: entity.String, Value: []byte(rk)}, true
	case entity.Timestamp:
		p, found = entity.Property{Type: entity.DateTime, Value: binary.LittleEndian.AppendUint64(nil, stamp.Ticks())}, true
	}
	switch {
	case !found:
		return false
	case n.kind == nodeProperty:
		return p.Type == entity.Boolean && p.Boolean()
	case !slices.Contains(literalsOf(p.Type), n.lit.typ):
		return v == today && slices.Contains([]comparison{opNe, opLt, opLe}, n.op)
	case p.Type == entity.String:
		return n.op.holds(entity.Compare(p.Value, n.lit.text))
	}
	return compareStored(&p, n.op, &n.lit)
}

// drawLiteral draws a literal of any type, often one that drawValues has.
func drawLiteral(t *rapid.T) literal {
	switch rapid.IntRange(0, 4).Draw(t, "literal") {
	case 0:
		return literal{typ: entity.Int32, num: int64(rapid.IntRange(0, 2).Draw(t, "int"))}
	case 1:
		return literal{typ: entity.Int64, num: int64(rapid.IntRange(0, 2).Draw(t, "long"))}
	case 2:
		return doubleLiteral(float64(rapid.IntRange(0, 2).Draw(t, "double")))
	case 3:
		return boolLiteral(rapid.Bool().Draw(t, "bool"))
	}
	return literal{typ: entity.String, text: drawKey(t, "text")}
}

// drawForm draws types of the properties x0, x1 and so on of a row, in their order, 0 for one that it lacks.
func drawForm(t *rapid.T) (form []entity.Type, order []int) {
	types := []entity.Type{0, 0, entity.String, entity.Int32, entity.Int64, entity.Double, entity.Boolean, entity.GUID}
	for range manyNames {
		form = append(form, rapid.SampledFrom(types).Draw(t, "type"))
		order = append(order, len(order))
	}
	if rapid.Bool().Draw(t, "shuffled") {
		order = rapid.Permutation(order).Draw(t, "order")
	}
	return form, order
}

// drawValues draws a row of a form.
func drawValues(t *rapid.T, form []entity.Type, order []int) []byte {
	b := entity.Build(nil)
	for _, i := range order {
		name, n := fmt.Sprintf("x%d", i), rapid.IntRange(0, 2).Draw(t, "value")
		var err error
		switch form[i] {
		case entity.String:
			err = b.AddString(name, strings.Repeat(drawKey(t, "text"), []int{1, 1, 100}[n]))
		case entity.Int32:
			err = b.AddInt32(name, int32(n))
		case entity.Int64:
			err = b.AddInt64(name, int64(n))
		case entity.Double:
			err = b.AddDouble(name, float64(n))
		case entity.Boolean:
			err = b.AddBoolean(name, n == 0)
		case entity.GUID:
			err = b.AddGUID(name, [16]byte{byte(n)})
		}
		require.NoError(t, err)
	}
	return b.Bytes()
}

// manyNames are more than the finder compares one by one.
const manyNames = 16

// One matcher over many rows finds what a search for each comparison finds, with few and
// with many names, whatever the rows before: mostly they had the same form.
func TestMatcherTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, root := drawVersion(t), drawNode(t, 3)
		names := rapid.SampledFrom([]int{1, 3, 2 * manyNames}).Draw(t, "names")
		var rename func(n *node)
		rename = func(n *node) {
			if n.name == "x" || n.name == entity.PartitionKey && rapid.Bool().Draw(t, "property") {
				n.name = fmt.Sprintf("x%d", rapid.IntRange(0, names-1).Draw(t, "name"))
				if n.kind == nodeCompare {
					n.lit = drawLiteral(t)
				}
			}
			for _, k := range n.kids {
				rename(k)
			}
		}
		rename(root)
		m := filterOf(v, root).Matcher()
		form, order := drawForm(t)
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			switch rapid.IntRange(0, 5).Draw(t, "form") {
			case 0:
				form, order = drawForm(t)
			case 1:
				form = slices.Clone(form)
				form[rapid.IntRange(0, manyNames-1).Draw(t, "other")] = entity.Int32
			}
			props := drawValues(t, form, order)
			e := tables.Entity{PK: drawKey(t, "pk"), RK: drawKey(t, "rk"), Timestamp: stamp, Props: props}
			got, work, err := m.Match(&e)
			require.NoError(t, err)
			require.Equal(t, naive(v, root, e.PK, e.RK, props), got, text(root))
			_, alone, err := filterOf(v, root).Matcher().Match(&e)
			require.NoError(t, err)
			require.Equal(t, alone, work, "the work does not depend on the rows before, so nor does a page")
			if m.ByValues() {
				byValues, _, err := m.Match(&tables.Entity{Timestamp: stamp, Props: props})
				require.NoError(t, err)
				require.Equal(t, got, byValues, text(root))
			}
		}
	})
}

// The table of 11.3 for every type of a property, every type of a literal and every operator: values that compare are equal
// here. For others today's service takes ne, lt and le for true, and the 2009 paper none. A property that is missing is
// not one of another type: nothing is true of it (mend: a row of another type was lost by ne).
func TestOtherTypes(t *testing.T) {
	const guid = "c9da6455-213d-42c9-9a79-3e9149a57833"
	const body = `{"PartitionKey":"1","RowKey":"1","Int32":1,"Int64@odata.type":"Edm.Int64","Int64":"1","Double":1.0,"String":"1","Boolean":true,` +
		`"DateTime@odata.type":"Edm.DateTime","DateTime":"2022-04-13T19:25:37.512524Z","Guid@odata.type":"Edm.Guid","Guid":"` + guid + `",` +
		`"Binary@odata.type":"Edm.Binary","Binary":"AQ=="}`
	literals := map[string]string{
		"Int32": "1", "Int64": "1L", "Double": "1.0", "String": "'1'", "Boolean": "true",
		"DateTime": "datetime'2022-04-13T19:25:37.512524Z'", "Guid": "guid'" + guid + "'", "Binary": "X'01'",
	}
	compare := map[string][]string{
		"Int64": {"Int64", "Int32"}, "Double": {"Double", "Int64", "Int32"},
		"PartitionKey": {"String"}, "RowKey": {"String"}, "Timestamp": {"DateTime"},
	}
	names := []string{"Int32", "Int64", "Double", "String", "Boolean", "DateTime", "Guid", "Binary", "PartitionKey", "RowKey", "Timestamp", "missing"}
	alike, unlike := []string{"eq", "ge", "le"}, []string{"ne", "lt", "le"}
	mirror := map[string]string{"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
	for _, v := range []protocol.Version{paper, protocol.Version20130815, today} {
		for _, name := range names {
			types := compare[name]
			if types == nil {
				types = []string{name}
			}
			for typ, literal := range literals {
				for op, mirrored := range mirror {
					want := name != "missing" && (slices.Contains(types, typ) && slices.Contains(alike, op) ||
						!slices.Contains(types, typ) && v != paper && slices.Contains(unlike, op))
					text := name + " " + op + " " + literal
					require.Equal(t, want, matchesOf(t, v, text, body), "%s: %s", v, text)
					require.Equal(t, !want, matchesOf(t, v, "not ("+text+")", body), "%s: not (%s)", v, text)
					require.Equal(t, want, matchesOf(t, v, literal+" "+mirrored+" "+name, body), "%s: %s, mirrored", v, text)
				}
			}
		}
	}
}

// The shorter way of comparing texts gives what the order of tables gives.
func TestCompareText(t *testing.T) {
	texts := []string{"", "a", "aa", "ab", "b", "aaaaaaaaa", "aaaaaaaab", "\ue000", "😀"}
	for _, a := range texts {
		for _, b := range texts {
			for op := opEq; op <= opLe; op++ {
				require.Equal(t, op.holds(entity.Compare(a, b)), compareText([]byte(a), op, b), "%q %v %q", a, op, b)
			}
		}
	}
}

// wide is an entity of as many properties as there may be.
func wide(t testing.TB) []byte {
	b := entity.Build(nil)
	for i := range entity.PropertiesMax {
		require.NoError(t, b.AddString(fmt.Sprintf("property%03d", i), strings.Repeat("v", 64)))
	}
	return b.Bytes()
}

// costly are filters of nearly the largest size that look at the most for their size.
func costly(text string) string { return strings.Repeat(text, (filterBytesMax-1)/len(text)) + "a" }

// The work of one row is bounded by the size of the filter and of the entity, each once:
// their product would be 2 million values.
func TestMatchWork(t *testing.T) {
	props := wide(t)
	for name, filter := range map[string]string{
		"one name":     costly("a or "),
		"comparisons":  costly("zz eq 1 or "),
		"last of all":  costly("property251 eq 'x' or "),
		"long strings": "property000 eq '" + strings.Repeat("v", filterBytesMax-20) + "'",
		"nots":         costly(strings.Repeat("not ", 200) + "a or "),
	} {
		f, err := Parse(today, filter)
		require.NoError(t, err, name)
		m := f.Matcher()
		for range 3 {
			_, work, err := m.Match(&tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
			require.NoError(t, err)
			require.Greater(t, work, 0, name)
			require.Less(t, work, filterBytesMax/4+entity.PropertiesMax+1000, name)
		}
	}
	var b strings.Builder
	for i := 0; b.Len() < filterBytesMax-30; i++ {
		fmt.Fprintf(&b, "n%d or ", i)
	}
	f, err := Parse(today, b.String()+"a")
	require.NoError(t, err)
	_, work, err := f.Matcher().Match(&tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
	require.NoError(t, err)
	require.Less(t, work, filterBytesMax/4)
}

// BenchmarkCostliestRow is one row against the costliest filters: what a query may do
// between two looks at its context.
func BenchmarkCostliestRow(b *testing.B) {
	props := wide(b)
	var names strings.Builder
	for i := 0; names.Len() < filterBytesMax-30; i++ {
		fmt.Fprintf(&names, "n%d or ", i)
	}
	for name, filter := range map[string]string{
		"bare": costly("a or "), "compared": costly("zz eq 1 or "), "names": names.String() + "a",
		"strings": costly("property000 eq '" + strings.Repeat("v", 64) + "w' or "),
	} {
		f, err := Parse(today, filter)
		require.NoError(b, err)
		m := f.Matcher()
		b.Run(name, func(b *testing.B) {
			start := time.Now()
			work := 0
			for b.Loop() {
				_, n, err := m.Match(&tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
				require.NoError(b, err)
				work += n
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(work), "ns/work")
		})
	}
}
