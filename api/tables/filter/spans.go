package filter

import (
	"slices"
	"sort"

	"antipode/services/tables/entity"
)

// successor is appended to a key to make the next one: U+0000 is the lowest unit.
const successor = "\x00"

// follows reports whether next is the key behind key, without making it.
func follows(next, key string) bool {
	return len(next) == len(key)+1 && next[len(key)] == 0 && next[:len(key)] == key
}

// spans is a set of keys of one kind in the order of UTF-16 code units: those from the first
// element to the second are inside, those from the third to the fourth, and so on; an odd last
// element has no end. The elements ascend, so that a set has one form: nil holds no key. It is
// shared, and never changed.
type spans []string

// every holds every key.
func every() spans { return spans{""} }

// IsAll reports whether the set is that.
func (s spans) IsAll() bool { return len(s) == 1 && s[0] == "" }

// compared is the set of keys for which an operator with key on its right is true.
func compared(op comparison, key string) spans {
	switch op {
	case opEq:
		return spans{key, key + successor}
	case opNe:
		return spans{key, key + successor}.complement()
	case opGt:
		return spans{key + successor}
	case opGe:
		return spans{key}
	case opLt:
		return spans{key}.complement()
	}
	return spans{key + successor}.complement()
}

func (s spans) complement() spans {
	if len(s) > 0 && s[0] == "" {
		return slices.Clip(s[1:])
	}
	return append(spans{""}, s...)
}

// equal costs nothing where both are shared.
func (s spans) equal(o spans) bool {
	return len(s) == len(o) && (len(s) == 0 || &s[0] == &o[0] || slices.Equal(s, o))
}

// count is the number of spans.
func (s spans) count() int { return (len(s) + 1) / 2 }

// place is how many elements from the one of index from on are at or below key, and from. Key is
// inside where it is odd.
func (s spans) place(from int, key string) int {
	if from == len(s) || entity.Compare(s[from], key) > 0 {
		return from
	}
	return from + sort.Search(len(s)-from, func(i int) bool { return entity.Compare(s[from+i], key) > 0 })
}

// setOperation combines two sets.
type setOperation byte

const (
	both setOperation = iota
	either
)

func (o setOperation) holds(a, b bool) bool {
	if o == both {
		return a && b
	}
	return a || b
}

// combine is linear in what it is given. Where one set decides, it is shared.
func (o setOperation) combine(a, b spans) spans {
	if one, ok := decided(o, a, b); ok {
		return one
	}
	out := make(spans, 0, len(a)+len(b))
	var inA, inB, in bool
	merge(a, b, func(key *string) string { return *key }, func(at string, a, b *string) {
		inA, inB = inA != (a != nil), inB != (b != nil)
		if now := o.holds(inA, inB); now != in {
			out, in = append(out, at), now
		}
	})
	return slices.Clip(out)
}

// decided returns the combination of two sets where one of them decides it; ok is false where none does.
func decided[S interface {
	~[]E
	IsAll() bool
}, E any](op setOperation, a, b S) (one S, ok bool) {
	if len(a) == 0 || b.IsAll() {
		a, b = b, a
	}
	switch {
	case len(b) == 0 && op == both:
		return nil, true
	case len(b) == 0:
		return a, true
	case a.IsAll() && op == both:
		return b, true
	case a.IsAll():
		return a, true
	}
	return nil, false
}

// merge walks through two sets together: it calls f for each key of an element of either, in ascending order, with the
// elements there, of which one may be nil.
func merge[E any](a, b []E, key func(*E) string, f func(at string, a, b *E)) {
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			order = entity.Compare(key(&a[0]), key(&b[0]))
		}
		var ofA, ofB *E
		var at string
		if order <= 0 {
			at, ofA, a = key(&a[0]), &a[0], a[1:]
		}
		if order >= 0 {
			at, ofB, b = key(&b[0]), &b[0], b[1:]
		}
		f(at, ofA, ofB)
	}
}

// hulls is a set around s of at most n spans: neighbours are taken together.
func (s spans) hulls(n int) spans {
	if s.count() <= n {
		return s
	}
	each := (s.count() + n - 1) / n
	out := make(spans, 0, 2*n)
	for i := 0; i < len(s); i += 2 * each {
		out = append(out, s[i])
		if last := i + 2*each - 1; last < len(s) {
			out = append(out, s[last])
		} else if len(s)%2 == 0 {
			out = append(out, s[len(s)-1])
		}
	}
	return out
}
