package filter

import (
	"math"

	"antipode/api/protocol"
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
	// unlike is what the comparison gives for a value of a type that does not compare with lit.
	unlike bool
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

// systemType is the type of the system property of a slot.
func systemType(slot int) entity.Type {
	if slot == slotTimestamp {
		return entity.DateTime
	}
	return entity.String
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

// holdsUnlike reports whether the operator is true for a value of a type that does not compare with the literal, in requests
// of version v (protocol/table.md 11.3).
func (op comparison) holdsUnlike(v protocol.Version) bool {
	return v >= protocol.Version20130815 && (op == opNe || op == opLt || op == opLe)
}

// literal is a typed constant. Type 0 is null.
type literal struct {
	typ entity.Type
	// text is the value of a String, the bytes of a Binary or Guid.
	text string
	// num is the value of an Int32, Int64, Boolean or DateTime, the bits of a Double.
	num int64
}

// compares reports whether the literal compares with stored values of a type: it is widened to that type, never the other
// way round.
func (l *literal) compares(stored entity.Type) bool {
	switch l.typ {
	case entity.Int32:
		return stored == entity.Int32 || stored == entity.Int64 || stored == entity.Double
	case entity.Int64:
		return stored == entity.Int64 || stored == entity.Double
	}
	return stored == l.typ
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
