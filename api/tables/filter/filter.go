package filter

import (
	"math"

	"antipode/services/tables/entity"
)

// Filter is a parsed $filter. A nil *Filter lets everything through. It may be used
// concurrently.
type Filter struct {
	root *node
	// names are the custom properties that it looks at; slots are their places.
	names []string
	// places finds a name's slot.
	places map[string]int
}

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
	// slot is the place of name in Filter.names, or one of a system property.
	slot int
	lit  literal
	// folded is lit.text in lower case where name is tableName.
	folded string
	kids   []*node
}

// Slots of the system properties.
const (
	slotPartitionKey = -1 - iota
	slotRowKey
	slotTimestamp
)

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

// holds reports whether the operator is true for the result of a three-way comparison.
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

// tableName is the only property of a row of Tables.
const tableName = "TableName"

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
