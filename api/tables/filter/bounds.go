package filter

import "antipode/services/tables/entity"

// successor is appended to a key to make the next one: U+0000 is the lowest unit.
const successor = "\x00"

// Span is a half-open interval of keys in the order of UTF-16 code units. The zero
// value holds every key.
type Span struct {
	// Low is the first key inside.
	Low string
	// High is the first key above, when Bounded.
	High    string
	Bounded bool
}

// noKeys is the empty span in its one form.
func noKeys() Span { return Span{Bounded: true} }

// only is the span of one key.
func only(key string) Span { return Span{Low: key, High: key + successor, Bounded: true} }

// Empty reports whether no key is inside.
func (s Span) Empty() bool { return s.Bounded && entity.Compare(s.Low, s.High) >= 0 }

// Contains reports whether key is inside.
func (s Span) Contains(key string) bool {
	return entity.Compare(key, s.Low) >= 0 && (!s.Bounded || entity.Compare(key, s.High) < 0)
}

// Key returns the only key inside, when there is just one.
func (s Span) Key() (string, bool) {
	return s.Low, s.Bounded && len(s.High) == len(s.Low)+1 && s.High == s.Low+successor
}

// intersect is the keys inside both.
func (s Span) intersect(o Span) Span {
	if entity.Compare(o.Low, s.Low) > 0 {
		s.Low = o.Low
	}
	if o.Bounded && (!s.Bounded || entity.Compare(o.High, s.High) < 0) {
		s.High, s.Bounded = o.High, true
	}
	if s.Empty() {
		return noKeys()
	}
	return s
}

// hull is the smallest span around both.
func (s Span) hull(o Span) Span {
	switch {
	case s.Empty():
		return o
	case o.Empty():
		return s
	}
	if entity.Compare(o.Low, s.Low) < 0 {
		s.Low = o.Low
	}
	switch {
	case !s.Bounded || !o.Bounded:
		s.High, s.Bounded = "", false
	case entity.Compare(o.High, s.High) > 0:
		s.High = o.High
	}
	return s
}

// KeyRange bounds the rows that a filter can let through.
type KeyRange struct{ PK, RK Span }

// Empty reports whether no row can match, so nothing need be read.
func (k KeyRange) Empty() bool { return k.PK.Empty() || k.RK.Empty() }

// Contains reports whether the row is inside.
func (k KeyRange) Contains(pk, rk string) bool { return k.PK.Contains(pk) && k.RK.Contains(rk) }

// Partition returns the only partition of the range, when there is just one.
func (k KeyRange) Partition() (string, bool) { return k.PK.Key() }

// Start is the first row of the scan in the order of (PartitionKey, RowKey).
func (k KeyRange) Start() (pk, rk string) { return k.PK.Low, k.RK.Low }

// End is the first row above the scan, when bounded.
func (k KeyRange) End() (pk, rk string, bounded bool) {
	if pk, one := k.Partition(); one && k.RK.Bounded {
		return pk, k.RK.High, true
	}
	return k.PK.High, "", k.PK.Bounded
}

// Bounds derives the rows to scan from the filter. The rows that match are those from
// Start to End that match the residual, which is nil when the bounds say it all. Rows
// between that Contains refuses do not match either and may be skipped.
func (f *Filter) Bounds() (keys KeyRange, residual *Filter) {
	if f == nil {
		return KeyRange{}, nil
	}
	keys = KeyRange{
		PK: f.root.span(entity.PartitionKey),
		RK: f.root.span(entity.RowKey),
	}
	if _, one := keys.Partition(); keys.PK.Empty() || keys.RK.Empty() {
		return KeyRange{PK: noKeys(), RK: noKeys()}, f
	} else if n := f.root.without(one); n != nil {
		residual = &Filter{root: n, names: f.names, places: f.places}
	}
	return keys, residual
}

// TableBounds derives the table names, in lower case, that MatchTable can let through.
func (f *Filter) TableBounds() Span {
	if f == nil {
		return Span{}
	}
	return f.root.span(tableName)
}

// span bounds the values of one always present String property for which n can be true.
func (n *node) span(name string) Span {
	switch n.kind {
	case nodeAnd:
		s := Span{}
		for _, k := range n.kids {
			s = s.intersect(k.span(name))
		}
		return s
	case nodeOr:
		s := noKeys()
		for _, k := range n.kids {
			s = s.hull(k.span(name))
		}
		return s
	case nodeLiteral:
		if n.lit.num == 0 {
			return noKeys()
		}
	case nodeProperty:
		if n.name == name {
			return noKeys()
		}
	case nodeCompare:
		if n.name == name {
			return n.compareSpan()
		}
	}
	return Span{}
}

func (n *node) compareSpan() Span {
	if n.lit.typ != entity.String {
		return noKeys()
	}
	key := n.lit.text
	if n.name == tableName {
		key = n.folded
	}
	switch n.op {
	case opEq:
		return only(key)
	case opGt:
		return Span{Low: key + successor}
	case opGe:
		return Span{Low: key}
	case opLt:
		return Span{High: key, Bounded: true}
	case opLe:
		return Span{High: key + successor, Bounded: true}
	}
	return Span{}
}

// without drops what a scan of the bounds makes true by itself: comparisons of the
// PartitionKey that every row must pass, and of the RowKey when the scan stays in one
// partition. It returns nil when nothing is left.
func (n *node) without(onePartition bool) *node {
	switch {
	case n.kind == nodeLiteral && n.lit.num != 0:
		return nil
	case n.kind == nodeCompare && n.lit.typ == entity.String && n.op != opNe:
		if n.name == entity.PartitionKey || n.name == entity.RowKey && onePartition {
			return nil
		}
	case n.kind == nodeAnd:
		var kids []*node
		for _, k := range n.kids {
			if k = k.without(onePartition); k != nil {
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
	return n
}
