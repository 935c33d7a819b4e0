package filter

import (
	"math"
	"strings"

	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Matcher applies a filter to one row after the other. It belongs to one page.
//
// Invariant: a row costs its properties once and each node of the filter once, however
// many comparisons name a property: the properties are put in the slots of their names
// before the first of them is compared.
type Matcher struct {
	filter *Filter
	// at says for each slot which of found it is, counted from 1; 0 is none.
	at []uint8
	// found are the properties of the row that the filter names.
	found []foundProperty

	pk, rk string
	ticks  int64
	props  []byte
	// looked: props of this row was walked.
	looked bool
	work   int
	err    error
}

type foundProperty struct {
	slot int
	entity.Property
}

// Matcher returns a matcher of the filter.
func (f *Filter) Matcher() *Matcher {
	m := &Matcher{filter: f}
	if f != nil {
		m.at = make([]uint8, len(f.names))
	}
	return m
}

// Match reports whether the filter lets the entity through, by the rules of
// protocol/table.md 11.3, and what finding that out cost, in the unit of services.Budget. An
// error means that its Props are not a well-formed list.
func (m *Matcher) Match(e tables.Entity) (ok bool, work int, err error) {
	if m.filter == nil {
		return true, 0, nil
	}
	for _, p := range m.found {
		m.at[p.slot] = 0
	}
	m.found, m.looked, m.work, m.err = m.found[:0], false, 0, nil
	m.pk, m.rk, m.ticks, m.props = e.PK, e.RK, int64(e.Timestamp.Ticks()), e.Props
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
		p, found := m.find(n.slot)
		return found && p.Type == entity.Boolean && p.Boolean()
	}
	return m.compare(n)
}

func (m *Matcher) compare(n *node) bool {
	switch n.slot {
	case slotPartitionKey:
		return n.lit.typ == entity.String && n.op.holds(entity.Compare(m.pk, n.lit.text))
	case slotRowKey:
		return n.lit.typ == entity.String && n.op.holds(entity.Compare(m.rk, n.lit.text))
	case slotTimestamp:
		return n.lit.typ == entity.DateTime && n.op.holds(compareInts(m.ticks, n.lit.num))
	}
	p, found := m.find(n.slot)
	if !found {
		return false
	}
	m.work += services.BytesWork(min(len(p.Value), len(n.lit.text)))
	return compareStored(p, n.op, n.lit)
}

// find looks a custom property up; a system property is not one.
func (m *Matcher) find(slot int) (entity.Property, bool) {
	if slot < 0 {
		return entity.Property{}, false
	}
	if !m.looked {
		m.look()
	}
	i := m.at[slot]
	if i == 0 {
		return entity.Property{}, false
	}
	return m.found[i-1].Property, true
}

// look walks the properties of the row until all that the filter names are found.
func (m *Matcher) look() {
	m.looked = true
	r := entity.Read(m.props)
	left := r.Len()
	for len(m.found) < len(m.at) {
		slot, p, ok := m.next(&r)
		if !ok {
			break
		}
		// Of two properties of one name, which no writer stores, the first one counts.
		if slot >= 0 && m.at[slot] == 0 {
			m.found = append(m.found, foundProperty{slot, p})
			m.at[slot] = uint8(len(m.found)) // At most entity.PropertiesMax: a list counts them in a byte.
		}
	}
	m.work += left - r.Len()
	m.err = r.Err()
}

// next returns the next property with its slot: the next that the filter names, where it names few.
func (m *Matcher) next(r *entity.Reader) (slot int, p entity.Property, ok bool) {
	if len(m.filter.names) <= fewNames {
		return r.NextOf(m.filter.names)
	}
	p, ok = r.Next()
	slot, named := m.filter.places[string(p.Name)]
	if !named {
		slot = -1
	}
	return slot, p, ok
}

// compareStored compares a stored value with a literal, which is widened to the stored
// type as in the table of 11.3. Types that do not compare give false for every
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
		return n.name == tableName && n.lit.typ == entity.String && n.op.holds(entity.Compare(name, n.folded))
	}
	return false
}
