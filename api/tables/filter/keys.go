package filter

import (
	"slices"
	"sort"

	"antipode/services/tables/entity"
)

// Key is the key of an entity.
type Key struct{ PK, RK string }

// Compare orders keys as a table does: by PartitionKey, then by RowKey.
func (k Key) Compare(o Key) int {
	if order := entity.Compare(k.PK, o.PK); order != 0 {
		return order
	}
	return entity.Compare(k.RK, o.RK)
}

// Keys is a set of keys of entities, made of disjoint ranges of them in ascending order. Nil
// holds no key. It is never changed, and may be used concurrently.
//
// Invariant: it has one form. Bands ascend, no two that follow each other hold the same RowKeys,
// and the first one holds some.
type Keys []band

// band is the partitions from pk to that of the next band: of each, the rows whose RowKeys are
// in rks.
type band struct {
	pk  string
	rks spans
}

// All holds every key.
func All() Keys { return Keys{{rks: every()}} }

// IsAll reports whether the set holds every key.
func (k Keys) IsAll() bool { return len(k) == 1 && k[0].pk == "" && k[0].rks.IsAll() }

// partitions holds all rows of these partitions.
func partitions(pks spans) Keys {
	k := make(Keys, len(pks))
	for i, pk := range pks {
		k[i].pk = pk
		if i%2 == 0 {
			k[i].rks = every()
		}
	}
	return k
}

// rows holds the rows with these RowKeys in every partition.
func rows(rks spans) Keys {
	if len(rks) == 0 {
		return nil
	}
	return Keys{{rks: rks}}
}

// Edge is an end of a span of keys: see Between.
type Edge struct {
	PK, RK string
	// HasPK is false where the span has no such end. HasRK is false where it is the partition's.
	HasPK, HasRK bool
}

// Between holds the keys from one edge to another one, both inclusive, in the order of a table:
// what the key range of a shared access signature allows (protocol/table.md 14.2).
func Between(from, to Edge) Keys {
	low, high := All(), All()
	switch {
	case from.HasPK && from.HasRK && from.RK != "":
		low = Keys{{from.PK, spans{from.RK}}, {from.PK + successor, every()}}
	case from.HasPK:
		low = partitions(compared(opGe, from.PK))
	}
	switch {
	case to.HasPK && to.HasRK:
		high = Keys{{"", every()}, {to.PK, compared(opLe, to.RK)}, {to.PK + successor, nil}}
		if to.PK == "" {
			high = high[1:]
		}
	case to.HasPK:
		high = partitions(compared(opLe, to.PK))
	}
	return low.Within(high)
}

// Within is the keys that are in o, too. It costs as much as there are ranges in k times those in
// o at most; Between has three.
func (k Keys) Within(o Keys) Keys { return combineKeys(k, o, both, both.combine) }

func (k Keys) complement() Keys {
	if len(k) == 0 {
		return All()
	}
	out := make(Keys, 0, len(k)+1)
	if k[0].pk != "" {
		out = append(out, band{rks: every()})
	}
	for _, b := range k {
		if rks := b.rks.complement(); len(rks) > 0 || len(out) > 0 {
			out = append(out, band{b.pk, rks})
		}
	}
	return out
}

// combineKeys combines two sets by a function for the RowKeys of partitions. Where one set
// decides, it is shared.
func combineKeys(a, b Keys, op setOperation, rowKeys func(a, b spans) spans) Keys {
	if one, ok := decided(op, a, b); ok {
		return one
	}
	var out Keys
	var inA, inB, in spans
	merge(a, b, func(b *band) string { return b.pk }, func(at string, a, b *band) {
		if a != nil {
			inA = a.rks
		}
		if b != nil {
			inB = b.rks
		}
		if now := rowKeys(inA, inB); !now.equal(in) {
			out, in = append(out, band{at, now}), now
		}
	})
	return out
}

// count is the number of ranges: bands, by the spans of RowKeys in each.
func (k Keys) count() (n int) {
	for _, b := range k {
		n += b.rks.count()
	}
	return n
}

// hulls is a set around k of at most n ranges: first neighbours among the RowKeys of a band are
// taken together, then whole bands, with all partitions between them.
func (k Keys) hulls(n int) Keys {
	if k.count() <= n {
		return k
	}
	held := 0 // bands with rows
	for _, b := range k {
		held += min(len(b.rks), 1)
	}
	var out Keys
	if held <= n {
		for _, b := range k {
			out = append(out, band{b.pk, b.rks.hulls(n / held)})
		}
	} else {
		out = k.hullsOfBands((held + n - 1) / n)
	}
	return slices.CompactFunc(out, func(a, b band) bool { return a.rks.equal(b.rks) })
}

// hullsOfBands takes as many bands with rows together as each says.
func (k Keys) hullsOfBands(each int) (out Keys) {
	taken := 0
	for i, b := range k {
		switch rks := b.rks.hulls(1); {
		case len(rks) == 0 && (taken == each || i == len(k)-1):
			out, taken = append(out, b), 0
		case len(rks) == 0:
		case taken == 0 || taken == each:
			out, taken = append(out, band{b.pk, rks}), 1
		default:
			hull := &out[len(out)-1]
			hull.rks = either.combine(hull.rks, rks).hulls(1)
			taken++
		}
	}
	return out
}

// Contains reports whether a key is in the set.
func (k Keys) Contains(pk, rk string) bool {
	_, inside, _ := (&Walk{keys: k}).At(pk, rk)
	return inside
}

// From returns the first key of the set at or above a key; ok is false if there is none. No
// entity need have it.
func (k Keys) From(key Key) (first Key, ok bool) {
	first, _, ok = (&Walk{keys: k}).At(key.PK, key.RK)
	return first, ok
}

// End returns the first key above the set; bounded is false if there is none.
func (k Keys) End() (end Key, bounded bool) {
	if len(k) == 0 {
		return Key{}, true
	}
	last := k[len(k)-1]
	if len(last.rks) > 0 {
		return Key{}, false
	}
	before := k[len(k)-2] // The first band holds rows.
	if n := len(before.rks); n%2 == 0 && follows(last.pk, before.pk) {
		return Key{before.pk, before.rks[n-1]}, true
	}
	return Key{PK: last.pk}, true
}

// One reports whether the set holds a single key.
func (k Keys) One() bool {
	return len(k) == 2 && follows(k[1].pk, k[0].pk) && len(k[0].rks) == 2 && follows(k[0].rks[1], k[0].rks[0])
}

// Walk returns a walk over the set from its first key.
func (k Keys) Walk() *Walk { return &Walk{keys: k} }

// Walk finds keys of a set by keys that ascend.
type Walk struct {
	keys Keys
	// band is the number of bands at or below the partition pk, which was asked for last; zero
	// before the first one. place is that of the RowKey in rks, the RowKeys of the last of them.
	band, place int
	pk          string
	rks         spans
}

// At returns the first key of the set at or above a key, which is not below the one of the call
// before; ok is false if there is none. It is the key itself where that is inside.
func (w *Walk) At(pk, rk string) (first Key, inside, ok bool) {
	if w.band == 0 || pk != w.pk {
		w.enter(pk)
	}
	w.place = w.rks.place(w.place, rk)
	switch {
	case w.place%2 == 1:
		return Key{pk, rk}, true, true
	case w.place < len(w.rks):
		return Key{pk, w.rks[w.place]}, false, true
	}
	first, ok = w.nextPartition()
	return first, false, ok
}

// enter moves to a partition.
func (w *Walk) enter(pk string) {
	w.pk, w.place, w.rks = pk, 0, nil
	if w.band < len(w.keys) && entity.Compare(w.keys[w.band].pk, pk) <= 0 {
		rest := w.keys[w.band:]
		w.band += sort.Search(len(rest), func(i int) bool { return entity.Compare(rest[i].pk, pk) > 0 })
	}
	if w.band > 0 {
		w.rks = w.keys[w.band-1].rks
	}
}

// Behind returns the first key of the set above a row that At has found inside, where keys that
// are not in the set lie between: a scan jumps to it. ok is false if there is no such key.
func (w *Walk) Behind(rk string) (first Key, jump, ok bool) {
	switch {
	case w.place == len(w.rks) || !follows(w.rks[w.place], rk):
		return Key{}, false, true
	case w.place+1 < len(w.rks):
		return Key{w.pk, w.rks[w.place+1]}, true, true
	}
	first, ok = w.nextPartition()
	return first, true, ok
}

// nextPartition returns the first key of the set in a partition above the present one.
func (w *Walk) nextPartition() (first Key, ok bool) {
	if len(w.rks) > 0 {
		if next := w.pk + successor; w.band == len(w.keys) || entity.Compare(next, w.keys[w.band].pk) < 0 {
			return Key{next, w.rks[0]}, true
		}
	}
	for _, b := range w.keys[w.band:] {
		if len(b.rks) > 0 {
			return Key{b.pk, b.rks[0]}, true
		}
	}
	return Key{}, false
}
