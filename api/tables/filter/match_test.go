package filter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// naive is the rule of 11.3 without slots: it searches the properties for each node.
func naive(n *node, pk, rk string, props []byte) bool {
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !naive(k, pk, rk, props) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if naive(k, pk, rk, props) {
				return true
			}
		}
		return false
	case nodeNot:
		return !naive(n.kids[0], pk, rk, props)
	case nodeLiteral:
		return n.lit.num != 0
	}
	p, found, _ := entity.Find(props, n.name)
	switch n.name {
	case entity.PartitionKey:
		p, found = entity.Property{Type: entity.String, Value: []byte(pk)}, true
	case entity.RowKey:
		p, found = entity.Property{Type: entity.String, Value: []byte(rk)}, true
	}
	if n.kind == nodeProperty {
		return found && p.Type == entity.Boolean && p.Boolean()
	}
	return found && compareStored(p, n.op, n.lit)
}

// One matcher over many rows finds what a search for each comparison finds, with few and
// with many names, whatever the rows before have left in its slots.
func TestMatcherTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := drawNode(t, 3)
		var rename func(n *node)
		rename = func(n *node) {
			if n.name == "x" {
				n.name = fmt.Sprintf("x%d", rapid.IntRange(0, 2*fewNames).Draw(t, "name"))
			}
			for _, k := range n.kids {
				rename(k)
			}
		}
		rename(root)
		m := filterOf(root).Matcher()
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			b := entity.Build(nil)
			for i := range 2 * fewNames {
				var err error
				switch rapid.IntRange(0, 3).Draw(t, "property") {
				case 0:
					err = b.AddString(fmt.Sprintf("x%d", i), drawKey(t, "value"))
				case 1:
					err = b.AddBoolean(fmt.Sprintf("x%d", i), rapid.Bool().Draw(t, "value"))
				case 2:
					err = b.AddInt32(fmt.Sprintf("x%d", i), 1)
				}
				require.NoError(t, err)
			}
			pk, rk := drawKey(t, "pk"), drawKey(t, "rk")
			got, work, err := m.Match(tables.Entity{PK: pk, RK: rk, Timestamp: stamp, Props: b.Bytes()})
			require.NoError(t, err)
			require.Positive(t, work)
			require.Equal(t, naive(root, pk, rk, b.Bytes()), got, text(root))
		}
	})
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
		f, err := Parse(filter)
		require.NoError(t, err, name)
		m := f.Matcher()
		for range 3 {
			_, work, err := m.Match(tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
			require.NoError(t, err)
			require.Greater(t, work, 0, name)
			require.Less(t, work, filterBytesMax/4+entity.PropertiesMax+1000, name)
		}
	}
	var b strings.Builder
	for i := 0; b.Len() < filterBytesMax-30; i++ {
		fmt.Fprintf(&b, "n%d or ", i)
	}
	f, err := Parse(b.String() + "a")
	require.NoError(t, err)
	_, work, err := f.Matcher().Match(tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
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
		f, err := Parse(filter)
		require.NoError(b, err)
		m := f.Matcher()
		b.Run(name, func(b *testing.B) {
			start := time.Now()
			work := 0
			for b.Loop() {
				_, n, err := m.Match(tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: props})
				require.NoError(b, err)
				work += n
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(work), "ns/work")
		})
	}
}
