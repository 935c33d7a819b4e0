package route

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/keys"
)

func ids(all []Range) (out []geo.RangeID) {
	for _, r := range all {
		out = append(out, r.ID)
	}
	return out
}

// Before any split each service has one range, which holds every key of it and of no other service.
func TestFirst(t *testing.T) {
	r := First()
	require.Equal(t, []geo.RangeID{1, 2, 3, 4}, r.IDs())
	require.Equal(t, geo.RangeID(1), r.Catalog())
	for _, s := range services() {
		require.Equal(t, []geo.RangeID{geo.FirstRange(s)}, ids(r.Service(s)))
		require.Equal(t, geo.FirstRange(s), r.Of(keys.Partition{Service: s, Account: "a", Object: "o"}))
		require.Equal(t, []geo.RangeID{geo.FirstRange(s)}, ids(r.Account(s, "a")))
		d, ok := r.Range(geo.FirstRange(s))
		require.True(t, ok)
		require.Equal(t, s, d.Service)
		require.EqualValues(t, 1, d.Version)
		require.Equal(t, []geo.RangeID{d.ID}, ids(r.Holding(d.Span)), "the same range of the other location")
	}
	require.Equal(t, r.IDs(), ids(r.Holding(geo.Span{})), "all keys")
	_, ok := r.Range(9)
	require.False(t, ok)
	require.Empty(t, r.Service(9))
	require.Zero(t, r.Of(keys.Partition{Service: 9}))
}

// split is First with the table range split in front of these accounts.
func split(t require.TestingT, accounts ...geo.Account) *Table {
	all := First().Ranges()[:3:3]
	whole, _ := First().Range(geo.FirstRange(geo.Table))
	start := whole.Span.Start
	for i, a := range append(accounts, "") {
		end := whole.Span.End
		if a != "" {
			end = string(keys.AppendString(keys.AppendService(nil, geo.Table), string(a)))
		}
		all = append(all, Range{ID: geo.RangeID(10 + i), Service: geo.Table, Span: geo.Span{Start: start, End: end}, Version: 2})
		start = end
	}
	r, err := New(all...)
	require.NoError(t, err)
	return r
}

// R14: after a split a key is held by the one range whose span has it; an account by the ranges that it
// overlaps; and a range of a location that is not split by all children of the other location.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR14Split(t *testing.T) {
	r := split(t, "g", "p")
	for a, want := range map[geo.Account]geo.RangeID{"a": 10, "fzzz": 10, "g": 11, "gz": 11, "o": 11, "p": 12, "z": 12} {
		require.Equal(t, want, r.Of(keys.Partition{Service: geo.Table, Account: a, Container: "t", Object: "o"}), "%s", a)
		require.Equal(t, []geo.RangeID{want}, ids(r.Account(geo.Table, a)), "%s", a)
	}
	whole, _ := First().Range(geo.FirstRange(geo.Table))
	require.Equal(t, []geo.RangeID{10, 11, 12}, ids(r.Holding(whole.Span)))
	child, _ := r.Range(11)
	require.Equal(t, []geo.RangeID{whole.ID}, ids(First().Holding(child.Span)))
	require.Equal(t, []geo.RangeID{11}, ids(r.Holding(child.Span)))
	require.Equal(t, []geo.RangeID{2}, ids(r.Account(geo.Blob, "g")))
}

// R14: whatever the splits, the ranges of a table tile each service: a key is in the span of exactly one range, which
// At names, and those of an account hold all its keys and no range twice.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR14Tiling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := split(rt, cuts(rt)...)
		a := geo.Account(rapid.StringMatching("[a-z]{1,4}").Draw(rt, "account"))
		s := rapid.SampledFrom(services()).Draw(rt, "service")
		p := keys.Partition{Service: s, Account: a, Container: "t", Object: rapid.String().Draw(rt, "object")}
		key := append(p.Append(nil), rapid.SliceOf(rapid.Byte()).Draw(rt, "row")...)
		var in []geo.RangeID
		for _, d := range r.Ranges() {
			if d.Span.Start <= string(key) && string(key) < d.Span.End {
				in = append(in, d.ID)
			}
		}
		require.Equal(rt, []geo.RangeID{r.Of(p)}, in)
		require.Equal(rt, in[0], r.At(key))
		require.Contains(rt, ids(r.Account(s, a)), in[0])
		require.Contains(rt, ids(r.Everywhere(a)), in[0])
		if s != geo.Catalog {
			require.Contains(rt, ids(r.Data(a)), in[0])
		}
		all := ids(r.Everywhere(a))
		slices.Sort(all)
		require.Equal(rt, all, slices.Compact(slices.Clone(all)), "a range twice")
	})
	for _, none := range []string{"", "\x00", "\xff"} {
		require.Zero(t, First().At([]byte(none)), "%q", none)
	}
}

// cuts are accounts in front of which the table range is split.
func cuts(rt *rapid.T) (out []geo.Account) {
	for _, c := range rapid.SliceOfNDistinct(rapid.StringMatching("[b-y]{1,3}"), 0, 6, rapid.ID[string]).Draw(rt, "cuts") {
		out = append(out, geo.Account(c))
	}
	slices.Sort(out)
	return out
}

// R7: an account has a gate in the ranges that hold keys of it, the catalog's first.
func TestR7Everywhere(t *testing.T) {
	require.Equal(t, []geo.RangeID{1, 2, 3, 4}, ids(First().Everywhere("a")))
	require.Equal(t, []geo.RangeID{2, 3, 4}, ids(First().Data("a")))
	r := split(t, "g", "p")
	require.Equal(t, []geo.RangeID{1, 2, 3, 11}, ids(r.Everywhere("h")))
	require.Equal(t, []geo.RangeID{2, 3, 12}, ids(r.Data("z")))
	require.Len(t, r.Ranges(), 6)
}

// Whatever the splits, Of names the range whose span has the key (twin: a search through all).
func TestOfTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := split(rt, cuts(rt)...)
		p := keys.Partition{Service: geo.Table, Account: geo.Account(rapid.StringMatching("[a-z]{1,4}").Draw(rt, "account")), Container: "t", Object: "o"}
		key := string(p.Append(nil))
		var want geo.RangeID
		for _, d := range r.Ranges() {
			if d.Span.Start <= key && key < d.Span.End {
				want = d.ID
			}
		}
		require.Equal(rt, want, r.Of(p))
		require.Equal(rt, []geo.RangeID{want}, ids(r.Holding(geo.Span{Start: key, End: key + "\x00"})))
	})
}

// Ranges that overlap, leave keys out or share an id are refused.
func TestNewRefuses(t *testing.T) {
	first := First().Ranges()
	change := func(i int, f func(r *Range)) []Range {
		all := append([]Range(nil), first...)
		f(&all[i])
		return all
	}
	for name, all := range map[string][]Range{
		"none":                {},
		"no table range":      first[:3],
		"twice":               append(first[:4:4], first[3]),
		"one id for two":      change(3, func(r *Range) { r.ID = 1 }),
		"no id":               change(3, func(r *Range) { r.ID = 0 }),
		"no version":          change(3, func(r *Range) { r.Version = 0 }),
		"keys left out":       change(3, func(r *Range) { r.Span.Start += "a" }),
		"the end left out":    change(2, func(r *Range) { r.Span.End = r.Span.Start + "a" }),
		"keys of another":     change(2, func(r *Range) { r.Span.End += "a" }),
		"an unknown service":  change(3, func(r *Range) { r.Service = 9 }),
		"an empty span":       change(3, func(r *Range) { r.Span.End = r.Span.Start }),
		"a span without end":  change(3, func(r *Range) { r.Span.End = "" }),
		"a service elsewhere": change(1, func(r *Range) { r.Service = geo.Queue }),
	} {
		_, err := New(all...)
		require.ErrorIs(t, err, ErrTable, name)
	}
}

// Finding the range of a partition allocates nothing.
func TestOfAllocatesNothing(t *testing.T) {
	first, later := First(), split(t, "g", "p")
	p := keys.Partition{Service: geo.Table, Account: "account", Container: "table", Object: "key"}
	key := p.Append(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { first.Of(p); later.Of(p); first.At(key); later.At(key); first.Account(geo.Table, "account") }))
}
