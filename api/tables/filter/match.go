package filter

import (
	"math"
	"slices"
	"strings"

	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Matcher applies a filter to one row after the other. It belongs to one page.
//
// Invariant: a row costs its properties once and each node of the filter once, however
// many comparisons name a property: all that the filter names are found
// before the first of them is compared.
type Matcher struct {
	filter *Filter
	finder *entity.Finder

	// row is the entity, for the time of a Match.
	row *tables.Entity
	// looked: the properties of this row were found.
	looked bool
	work   int
	err    error
}

// Matcher returns a matcher of the filter.
func (f *Filter) Matcher() *Matcher {
	m := &Matcher{filter: f}
	if f != nil {
		m.finder = entity.NewFinder(f.names, f.places)
	}
	return m
}

// ByValues reports whether rows are let through by their values alone, whatever their keys.
func (m *Matcher) ByValues() bool { return m.filter != nil && !m.filter.root.readsKey() }

// readsKey reports whether a condition has a part of the key in it.
func (n *node) readsKey() bool {
	return n.slot == slotPartitionKey || n.slot == slotRowKey || slices.ContainsFunc(n.kids, (*node).readsKey)
}

// Match reports whether the filter lets the entity through, by the rules of
// protocol/table.md 11.3, and what finding that out cost, in the unit of services.Budget. An
// error means that its Props are not a well-formed list.
func (m *Matcher) Match(e *tables.Entity) (ok bool, work int, err error) {
	if m.filter == nil {
		return true, 0, nil
	}
	m.row, m.looked, m.work, m.err = e, false, 0, nil
	ok = m.match(m.filter.root)
	return ok, m.work, m.err
}

func (m *Matcher) match(n *node) bool {
	m.work++
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !m.match(k) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if m.match(k) {
				return true
			}
		}
		return false
	case nodeNot:
		return !m.match(n.kids[0])
	case nodeLiteral:
		return n.lit.num != 0
	case nodeProperty:
		p := m.find(n.slot)
		return p != nil && p.Type == entity.Boolean && p.Boolean()
	}
	return m.compare(n)
}

func (m *Matcher) compare(n *node) bool {
	if n.slot < 0 {
		return m.compareSystem(n)
	}
	p := m.find(n.slot)
	switch {
	case p == nil:
		return false
	case !n.lit.compares(p.Type):
		return n.unlike
	}
	m.work += services.BytesWork(min(len(p.Value), len(n.lit.text)))
	return compareStored(p, n.op, &n.lit)
}

// compareSystem compares a system property, which every row has.
func (m *Matcher) compareSystem(n *node) bool {
	switch {
	case !n.lit.compares(systemType(n.slot)):
		return n.unlike
	case n.slot == slotPartitionKey:
		return n.op.holds(entity.Compare(m.row.PK, n.lit.text))
	case n.slot == slotRowKey:
		return n.op.holds(entity.Compare(m.row.RK, n.lit.text))
	}
	return n.op.holds(compareInts(int64(m.row.Timestamp.Ticks()), n.lit.num))
}

// find looks a custom property up, nil if the row has none; a system property is not one.
func (m *Matcher) find(slot int) *entity.Property {
	if slot < 0 {
		return nil
	}
	if !m.looked {
		var walked int
		m.looked = true
		walked, m.err = m.finder.Find(m.row.Props)
		m.work += walked
	}
	return m.finder.Get(slot)
}

// compareStored compares a stored value with a literal that compares with its type, and is
// widened to that.
func compareStored(p *entity.Property, op comparison, lit *literal) bool {
	switch p.Type {
	case entity.String:
		return compareText(p.Value, op, lit.text)
	case entity.Int32:
		return op.holds(compareInts(int64(p.Int32()), lit.num))
	case entity.Int64:
		return op.holds(compareInts(p.Int64(), lit.num))
	case entity.Double:
		return compareDouble(p.Double(), op, lit)
	case entity.Boolean:
		return op.holds(int(p.Value[0]) - int(lit.num))
	case entity.DateTime:
		return op.holds(compareInts(p.DateTime(), lit.num))
	}
	return op.holds(compareBytes(p.Value, lit.text)) // A GUID or Binary.
}

// compareText takes a shorter way where the order does not matter.
func compareText(v []byte, op comparison, text string) bool {
	switch op {
	case opEq:
		return string(v) == text
	case opNe:
		return string(v) != text
	}
	return op.holds(entity.Compare(v, text))
}

func compareDouble(v float64, op comparison, lit *literal) bool {
	w := float64(lit.num)
	if lit.typ == entity.Double {
		w = math.Float64frombits(uint64(lit.num))
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

// MatchTable reports whether the filter lets a table through, and what that cost: only
// TableName exists, and it compares without case.
func (f *Filter) MatchTable(name string) (ok bool, work int) {
	if f == nil {
		return true, 0
	}
	ok = f.root.matchTable(strings.ToLower(name), &work)
	return ok, work
}

func (n *node) matchTable(name string, work *int) bool {
	*work++
	switch n.kind {
	case nodeAnd:
		for _, k := range n.kids {
			if !k.matchTable(name, work) {
				return false
			}
		}
		return true
	case nodeOr:
		for _, k := range n.kids {
			if k.matchTable(name, work) {
				return true
			}
		}
		return false
	case nodeNot:
		return !n.kids[0].matchTable(name, work)
	case nodeLiteral:
		return n.lit.num != 0
	case nodeCompare:
		switch {
		case n.name != tableName:
			return false
		case !n.lit.compares(entity.String):
			return n.unlike
		}
		return n.op.holds(entity.Compare(name, n.folded))
	}
	return false
}
