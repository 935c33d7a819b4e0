package filter

import "antipode/services/tables/entity"

const (
	// rangesMax bounds the ranges of a plan; past it neighbours are taken together, with what
	// lies between. A filter as clients send it has few; 64 KiB could name two thousand.
	rangesMax = 1000
	// planWorkMax bounds the work of making a plan, in bounds of ranges looked at: some 10 ms.
	// Past it a set of keys is one range.
	planWorkMax = 200_000
)

// Plan is how the rows of a filter are found: those with keys in Keys that Rest lets through.
type Plan struct {
	Keys Keys
	// Rest is what is left to test of a row; nil where Keys says it all.
	Rest *Filter
}

// Plan derives the keys to scan from the filter. Its cost is bounded.
func (f *Filter) Plan() Plan {
	if f == nil {
		return Plan{Keys: All()}
	}
	p := planner{column: entityColumn, required: map[*node]bounds{}}
	keys := p.bounds(f.root, true).may
	plan := Plan{Keys: keys}
	if rest := p.rest(f.root, keys); rest != nil {
		plan.Rest = &Filter{root: rest, names: f.names, places: f.places}
	}
	return plan
}

// Span is a half-open interval of names.
type Span struct {
	// Low is the first name inside.
	Low string
	// High is the first name above, when Bounded.
	High    string
	Bounded bool
}

// TableBounds derives the table names, in lower case, that MatchTable can let through.
func (f *Filter) TableBounds() Span {
	if f == nil {
		return Span{}
	}
	p := planner{column: tableColumn}
	keys := p.bounds(f.root, false).may
	first, some := keys.From(Key{})
	end, bounded := keys.End()
	if !some {
		return Span{Bounded: true}
	}
	return Span{Low: first.PK, High: end.PK, Bounded: bounded}
}

// bounds are what the key of a row says about a condition: it is true for the keys in must,
// whatever else the row has, and can be true for those in may alone. For a condition on keys
// both are the same set.
type bounds struct{ must, may Keys }

// never, always and unknown are the bounds of what is decided without a key, or by other
// properties.
func never() bounds   { return bounds{} }
func always() bounds  { return bounds{All(), All()} }
func unknown() bounds { return bounds{nil, All()} }

// constant is one of the first two.
func constant(holds bool) bounds {
	if holds {
		return always()
	}
	return never()
}

// planner makes one plan.
type planner struct {
	// column is what a comparison or a bare property says by the key alone.
	column func(*node) bounds
	// required has the bounds of the root and of all that must be true with it: see rest.
	required map[*node]bounds
	// work is what was looked at so far.
	work int
}

// entityColumn is the column of a query of entities.
func entityColumn(n *node) bounds {
	switch {
	case n.slot >= 0:
		return unknown()
	case n.kind == nodeProperty: // No system property is Boolean.
		return never()
	case !n.lit.compares(systemType(n.slot)):
		return constant(n.unlike)
	case n.slot == slotTimestamp:
		return unknown()
	}
	keys := rows(compared(n.op, n.lit.text))
	if n.slot == slotPartitionKey {
		keys = partitions(compared(n.op, n.lit.text))
	}
	return bounds{keys, keys}
}

// tableColumn is the column of a query of tables: only TableName exists, as the partition.
func tableColumn(n *node) bounds {
	switch {
	case n.kind == nodeProperty || n.name != tableName:
		return never()
	case !n.lit.compares(entity.String):
		return constant(n.unlike)
	}
	keys := partitions(compared(n.op, n.folded))
	return bounds{keys, keys}
}

// bounds bounds a condition. It keeps those of what is required.
func (p *planner) bounds(n *node, required bool) (b bounds) {
	switch n.kind {
	case nodeAnd:
		b = p.chain(n.kids, both, required)
	case nodeOr:
		b = p.chain(n.kids, either, false)
	case nodeNot:
		of := p.bounds(n.kids[0], false)
		b = bounds{of.may.complement(), of.must.complement()}
	case nodeLiteral:
		b = constant(n.lit.num != 0)
	default:
		b = p.column(n)
	}
	if required {
		p.required[n] = b
	}
	return b
}

// chain bounds conditions that are combined. Halves are combined first, so that a long chain
// does not cost the square of its length.
func (p *planner) chain(kids []*node, op setOperation, required bool) bounds {
	if len(kids) == 1 {
		return p.bounds(kids[0], required)
	}
	a, b := p.chain(kids[:len(kids)/2], op, required), p.chain(kids[len(kids)/2:], op, required)
	return bounds{p.inner(a.must, b.must, op), p.outer(a.may, b.may, op)}
}

// spent counts the work of combining two sets, and reports whether it is too much.
func (p *planner) spent(a, b spans) bool {
	p.work++
	if p.work <= planWorkMax && len(a) > 0 && len(b) > 0 {
		p.work += len(a) + len(b)
	}
	return p.work > planWorkMax
}

// rangesMax is how many ranges a set may have now.
func (p *planner) rangesMax() int {
	if p.work > planWorkMax {
		return 1
	}
	return rangesMax
}

// inner is a set within the combination of two sets. Where that has too many ranges it is empty.
func (p *planner) inner(a, b Keys, op setOperation) Keys {
	k := combineKeys(a, b, op, func(a, b spans) spans {
		if p.spent(a, b) {
			return nil
		}
		return op.combine(a, b)
	})
	if k.count() > p.rangesMax() {
		return nil
	}
	return k
}

// outer is a set around the combination of two sets.
func (p *planner) outer(a, b Keys, op setOperation) Keys {
	return combineKeys(a, b, op, func(a, b spans) spans {
		if p.spent(a, b) {
			a, b = a.hulls(1), b.hulls(1)
		}
		return op.combine(a, b)
	}).hulls(p.rangesMax())
}

// rest is what is left to test of a condition for rows with these keys: without what is true
// for all of them. It is nil if nothing is left.
func (p *planner) rest(n *node, keys Keys) *node {
	if len(p.outer(keys, p.required[n].must.complement(), both)) == 0 {
		return nil
	}
	if n.kind != nodeAnd {
		return n
	}
	var kids []*node
	for _, k := range n.kids {
		if k = p.rest(k, keys); k != nil {
			kids = append(kids, k)
		}
	}
	switch len(kids) {
	case 0:
		return nil
	case 1:
		return kids[0]
	}
	return &node{kind: nodeAnd, kids: kids}
}
