package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"antipode/geo"
	"antipode/stamp/keys"
)

// Range describes a range: the keys that it holds, and the version of that description.
type Range struct {
	ID      geo.RangeID
	Service geo.Service
	Span    geo.Span
	Version geo.DescriptorVersion
}

// ErrTable: ranges overlap, leave keys out, or are named twice.
var ErrTable = errors.New("route: not a table of ranges")

// Table is the ranges of a stamp. It is immutable; methods may be called concurrently.
type Table struct {
	// ranges are in the order of their spans, which is that of the services too.
	ranges []Range
	// of are the ranges of each service, parts of ranges.
	of [geo.Table + 1][]Range
}

// services are in the order of their keys.
func services() []geo.Service { return []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} }

// First returns the table of a stamp before any split: one range for each service.
func First() *Table {
	var all []Range
	for _, s := range services() {
		all = append(all, Unsplit(geo.FirstRange(s)))
	}
	t, err := New(all...)
	if err != nil {
		panic(err) // The table above is a constant.
	}
	return t
}

// Unsplit describes a range that no split has made or changed: the whole of a service, which has the number of
// the id (geo.FirstRange). A stamp has no others so far, so this describes every range.
func Unsplit(id geo.RangeID) Range {
	s := geo.Service(id)
	return Range{ID: id, Service: s, Span: spanOf(s), Version: 1}
}

// spanOf is the span of all keys of a service.
func spanOf(s geo.Service) geo.Span {
	data := keys.AppendService(nil, s)
	return geo.Span{Start: string(data), End: string(keys.PrefixEnd(data))}
}

// New returns the table of these ranges, in any order. The spans of a service's ranges must follow each
// other without a gap from its first key to its last: ErrTable otherwise.
func New(all ...Range) (*Table, error) {
	t := &Table{ranges: slices.Clone(all)}
	slices.SortFunc(t.ranges, func(a, b Range) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	ids := map[geo.RangeID]bool{}
	rest := t.ranges
	for _, s := range services() {
		whole := spanOf(s)
		n, at := 0, whole.Start
		for ; n < len(rest) && rest[n].Service == s; n++ {
			r := rest[n]
			if r.Span.Start != at || r.Span.End <= at || r.ID == 0 || r.Version == 0 || ids[r.ID] {
				return nil, fmt.Errorf("%w: range %d of the %s service", ErrTable, r.ID, s)
			}
			ids[r.ID], at = true, r.Span.End
		}
		if at != whole.End {
			return nil, fmt.Errorf("%w: no range holds the last keys of the %s service", ErrTable, s)
		}
		t.of[s], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: range %d is of no service or out of its span", ErrTable, rest[0].ID)
	}
	return t, nil
}

// Ranges returns all ranges, the catalog's first. The caller does not change them.
func (t *Table) Ranges() []Range { return t.ranges }

// IDs returns the ids of all ranges, the catalog's first.
func (t *Table) IDs() []geo.RangeID {
	ids := make([]geo.RangeID, 0, len(t.ranges))
	for _, r := range t.ranges {
		ids = append(ids, r.ID)
	}
	return ids
}

// Range returns a range; ok is false if there is none of that id.
func (t *Table) Range(id geo.RangeID) (r Range, ok bool) {
	for _, r := range t.ranges {
		if r.ID == id {
			return r, true
		}
	}
	return Range{}, false
}

// Service returns the ranges of a service in the order of their spans. The caller does not change
// them.
func (t *Table) Service(s geo.Service) []Range {
	if int(s) >= len(t.of) {
		return nil
	}
	return t.of[s]
}

// Catalog returns the range of the catalog, which is never split.
func (t *Table) Catalog() geo.RangeID { return t.of[geo.Catalog][0].ID }

// Of returns the range that holds a partition. It does not allocate for partitions of usual length.
func (t *Table) Of(p keys.Partition) geo.RangeID {
	all := t.Service(p.Service)
	switch len(all) {
	case 0:
		return 0
	case 1:
		return all[0].ID
	}
	var buf [256]byte
	key := p.Append(buf[:0])
	// The first one starts at the service's first key.
	return all[sort.Search(len(all), func(i int) bool { return all[i].Span.Start > string(key) })-1].ID
}

// At returns the range that holds a key; zero if it is of no service.
func (t *Table) At(key []byte) geo.RangeID {
	i := sort.Search(len(t.ranges), func(i int) bool { return t.ranges[i].Span.Start > string(key) })
	if i == 0 || string(key) >= t.ranges[i-1].Span.End {
		return 0
	}
	return t.ranges[i-1].ID
}

// Account returns the ranges of a service that hold keys of an account. The caller does not change them.
func (t *Table) Account(s geo.Service, a geo.Account) []Range {
	if all := t.Service(s); len(all) <= 1 {
		return all
	}
	own := keys.AppendString(keys.AppendService(nil, s), string(a))
	return overlapping(t.Service(s), geo.Span{Start: string(own), End: string(keys.PrefixEnd(own))})
}

// Data returns the ranges of all services, without the catalog's, that hold keys of an account. With the catalog's
// they are those in which the account has a gate (R7).
func (t *Table) Data(a geo.Account) []Range {
	var out []Range
	for _, s := range geo.Services {
		out = append(out, t.Account(s, a)...)
	}
	return out
}

// Everywhere returns the ranges in which an account has a gate, the catalog's first.
func (t *Table) Everywhere(a geo.Account) []Range {
	return append(slices.Clone(t.of[geo.Catalog]), t.Data(a)...)
}

// Holding returns the ranges that hold keys of a span, which is that of another location's range: its
// records go to these, by key.
func (t *Table) Holding(s geo.Span) []Range { return overlapping(t.ranges, s) }

// overlapping returns the part of ranges, in the order of their spans, that overlaps a span.
func overlapping(all []Range, s geo.Span) []Range {
	from := sort.Search(len(all), func(i int) bool { return all[i].Span.End > s.Start })
	to := len(all)
	if s.End != "" {
		to = sort.Search(len(all), func(i int) bool { return all[i].Span.Start >= s.End })
	}
	return all[from:max(from, to)]
}
