package odata

import (
	"math"
	"strings"

	"antipode/geo"
	"antipode/services/tables/entity"
)

// Filter is a parsed $filter. A nil *Filter lets everything through. It may be used
// concurrently.
type Filter struct{ root *node }

type nodeKind byte

const (
	nodeAnd nodeKind = iota
	nodeOr
	nodeNot
	nodeCompare
	nodeProperty // a bare property: true when it is stored as Boolean true
	nodeLiteral  // a bare Boolean
)

// node is one node of the tree. Chains of one operator are flat, so the depth of a
// tree is the depth of its parentheses, which the parser bounds.
type node struct {
	kind nodeKind
	op   comparison
	name string
	lit  literal
	kids []*node
}

// comparison is an operator between a property, on its left, and a literal.
type comparison byte

const (
	opEq comparison = iota
	opNe
	opGt
	opGe
	opLt
	opLe
)

// mirrored is the operator with its sides exchanged.
func (op comparison) mirrored() comparison {
	switch op {
	case opGt:
		return opLt
	case opGe:
		return opLe
	case opLt:
		return opGt
	case opLe:
		return opGe
	}
	return op
}

// holds tells whether the operator is true for the result of a three-way comparison.
func (op comparison) holds(order int) bool {
	switch op {
	case opEq:
		return order == 0
	case opNe:
		return order != 0
	case opGt:
		return order > 0
	case opGe:
		return order >= 0
	case opLt:
		return order < 0
	}
	return order <= 0
}

// literal is a typed constant. Type 0 is null.
type literal struct {
	typ entity.Type
	// text is the value of a String, the bytes of a Binary or Guid.
	text string
	// num is the value of an Int32, Int64, Boolean or DateTime, the bits of a Double.
	num int64
}

// row is what a filter looks at.
type row struct {
	pk, rk string
	ticks  int64
	props  []byte
	err    error
}

// Match tells whether the filter lets the entity through, by the rules of
// spec/table.md 11.3. An error means props is not a well-formed list.
func (f *Filter) Match(pk, rk string, ts geo.Timestamp, props []byte) (bool, error) {
	if f == nil {
		return true, nil
	}
	r := row{pk: pk, rk: rk, ticks: int64(ts.Ticks()), props: props}
	return f.root.match(&r), r.err
}

func (n *node) match(r *row) bool {
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !k.match(r) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if k.match(r) {
				return true
			}
		}
		return false
	case nodeNot:
		return !n.kids[0].match(r)
	case nodeLiteral:
		return n.lit.num != 0
	case nodeProperty:
		p, found := r.find(n.name)
		return found && p.Type == entity.Boolean && p.Boolean()
	}
	return n.compare(r)
}

func (n *node) compare(r *row) bool {
	switch n.name {
	case entity.PartitionKey:
		return n.lit.typ == entity.String && n.op.holds(entity.Compare(r.pk, n.lit.text))
	case entity.RowKey:
		return n.lit.typ == entity.String && n.op.holds(entity.Compare(r.rk, n.lit.text))
	case entity.Timestamp:
		return n.lit.typ == entity.DateTime && n.op.holds(compareInts(r.ticks, n.lit.num))
	}
	p, found := r.find(n.name)
	return found && compareStored(p, n.op, n.lit)
}

// find looks a custom property up; a system property is not one.
func (r *row) find(name string) (entity.Property, bool) {
	p, found, err := entity.Find(r.props, name)
	if err != nil {
		r.err = err
	}
	return p, found
}

// compareStored compares a stored value with a literal, which is widened to the stored
// type where the table of 11.3 says so. Types that do not compare give false for every
// operator.
func compareStored(p entity.Property, op comparison, lit literal) bool {
	switch p.Type {
	case entity.String:
		return lit.typ == entity.String && op.holds(entity.Compare(p.Value, lit.text))
	case entity.Int32:
		return lit.typ == entity.Int32 && op.holds(compareInts(int64(p.Int32()), lit.num))
	case entity.Int64:
		return (lit.typ == entity.Int64 || lit.typ == entity.Int32) && op.holds(compareInts(p.Int64(), lit.num))
	case entity.Double:
		return compareDouble(p.Double(), op, lit)
	case entity.Boolean:
		return lit.typ == entity.Boolean && op.holds(int(p.Value[0])-int(lit.num))
	case entity.DateTime:
		return lit.typ == entity.DateTime && op.holds(compareInts(p.DateTime(), lit.num))
	case entity.GUID, entity.Binary:
		return lit.typ == p.Type && op.holds(compareBytes(p.Value, lit.text))
	}
	return false
}

func compareDouble(v float64, op comparison, lit literal) bool {
	var w float64
	switch lit.typ {
	case entity.Double:
		w = math.Float64frombits(uint64(lit.num))
	case entity.Int32, entity.Int64:
		w = float64(lit.num)
	default:
		return false
	}
	if math.IsNaN(v) || math.IsNaN(w) {
		return op == opNe
	}
	switch {
	case v < w:
		return op.holds(-1)
	case v > w:
		return op.holds(1)
	}
	return op.holds(0)
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareBytes(a []byte, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

// tableName is the only property of a row of Tables.
const tableName = "TableName"

// MatchTable tells whether the filter lets a table through: only TableName exists, and
// it compares without case.
func (f *Filter) MatchTable(name string) bool {
	return f == nil || f.root.matchTable(strings.ToLower(name))
}

func (n *node) matchTable(name string) bool {
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !k.matchTable(name) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if k.matchTable(name) {
				return true
			}
		}
		return false
	case nodeNot:
		return !n.kids[0].matchTable(name)
	case nodeLiteral:
		return n.lit.num != 0
	case nodeCompare:
		return n.name == tableName && n.lit.typ == entity.String &&
			n.op.holds(entity.Compare(name, strings.ToLower(n.lit.text)))
	}
	return false
}

func doubleLiteral(v float64) literal {
	return literal{typ: entity.Double, num: int64(math.Float64bits(v))}
}

func boolLiteral(v bool) literal {
	l := literal{typ: entity.Boolean}
	if v {
		l.num = 1
	}
	return l
}
