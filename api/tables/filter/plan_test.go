package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// show prints a set of keys of one kind: * is every key, and a key alone stands for itself.
func (s spans) show() string {
	if s.IsAll() {
		return "*"
	}
	var out []string
	for pair := range slices.Chunk(s, 2) {
		switch {
		case len(pair) == 1:
			out = append(out, "["+pair[0]+",")
		case follows(pair[1], pair[0]):
			out = append(out, "'"+pair[0]+"'")
		default:
			out = append(out, "["+pair[0]+","+pair[1]+")")
		}
	}
	return strings.Join(out, "")
}

// show prints a set of keys: for each band its partitions and their RowKeys.
func (k Keys) show() string {
	var out []string
	for i, b := range k {
		if len(b.rks) == 0 {
			continue
		}
		pks := spans{b.pk}
		if i+1 < len(k) {
			pks = append(pks, k[i+1].pk)
		}
		out = append(out, pks.show()+":"+b.rks.show())
	}
	return strings.ReplaceAll(strings.Join(out, " "), "\x00", "+")
}

func parse(t require.TestingT, text string) *Filter {
	f, err := Parse(today, text)
	require.NoError(t, err, text)
	return f
}

// restText is the text of what a plan leaves to test.
func restText(p Plan) string {
	if p.Rest == nil {
		return ""
	}
	return text(p.Rest.root)
}

// What the plans of filters that clients send look like.
//
// Capability: Clients: `$filter` of tables.
func TestPlan(t *testing.T) {
	for _, tc := range []struct{ filter, keys, rest string }{
		{"", "*:*", ""},
		{"PartitionKey eq 'a'", "'a':*", ""},
		{"PartitionKey eq ''", "'':*", ""},
		{"PartitionKey eq 'a' and RowKey eq 'b'", "'a':'b'", ""},
		{"RowKey eq 'b' and PartitionKey eq 'a' and Rating eq 3", "'a':'b'", "Rating eq 3"},
		{"(((PartitionKey eq 'a') and (RowKey ge 'b')) and (Rating eq 3))", "'a':[b,", "Rating eq 3"},
		{"PartitionKey eq 'a' and RowKey gt 'b' and RowKey le 'c'", "'a':[b+,c+)", ""},
		{"PartitionKey ge 'PDC' and PartitionKey lt 'PDD'", "[PDC,PDD):*", ""},
		{"PartitionKey ge 'PDC' and PartitionKey lt 'PDD' and x eq 1 and y", "[PDC,PDD):*", "(x eq 1) and (y)"},
		{"PartitionKey le 'Football_7991' and PartitionKey gt 'Football_7990'", "[Football_7990+,Football_7991+):*", ""},
		{"PartitionKey ge 'a' and RowKey eq 'b'", "[a,:'b'", ""},
		{"PartitionKey ne 'a' and 'm' gt RowKey", "[,a):[,m) [a+,:[,m)", ""},
		// Disjunctions.
		{"PartitionKey eq 'c' or PartitionKey eq 'a'", "'a':* 'c':*", ""},
		{"(PartitionKey eq 'a' and RowKey ge 'x') or PartitionKey eq 'b'", "'a':[x, 'b':*", ""},
		{
			"(PartitionKey eq 'a' and x eq 1) or PartitionKey eq 'b'", "'a':* 'b':*",
			"((PartitionKey eq 'a') and (x eq 1)) or (PartitionKey eq 'b')",
		},
		{"PartitionKey eq 'a' and (RowKey eq '2' or RowKey eq '1' or RowKey ge '5')", "'a':'1''2'[5,", ""},
		{"PartitionKey eq 'a' and (RowKey eq '2' or x eq 1)", "'a':*", "(RowKey eq '2') or (x eq 1)"},
		{"(PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey eq '1' or RowKey eq '2')", "'a':'1''2' 'b':'1''2'", ""},
		{"PartitionKey lt 'b' or PartitionKey ge 'b'", "*:*", ""},
		{"PartitionKey eq 'a' or x eq 1", "*:*", "(PartitionKey eq 'a') or (x eq 1)"},
		{"PartitionKey eq 'a' or RowKey eq 'r'", "[,a):'r' 'a':* [a+,:'r'", ""},
		// not, as far as it is exact.
		{"not (PartitionKey eq 'a')", "[,a):* [a+,:*", ""},
		{"not (PartitionKey lt 'a' or PartitionKey ge 'b')", "[a,b):*", ""},
		{"not (PartitionKey eq 'a' and RowKey lt 'm')", "[,a):* 'a':[m, [a+,:*", ""},
		{"not (PartitionKey eq 'a' and x eq 1)", "*:*", "not ((PartitionKey eq 'a') and (x eq 1))"},
		{"not (PartitionKey eq 'a' or x eq 1)", "[,a):* [a+,:*", "not ((PartitionKey eq 'a') or (x eq 1))"},
		{"not not (RowKey eq 'r')", "*:'r'", ""},
		// What no row passes, and what every row does.
		{"PartitionKey eq 'a' and PartitionKey eq 'b'", "", ""},
		{"PartitionKey eq 1 and x eq 1", "", ""},
		{"PartitionKey eq 'a' and RowKey lt ''", "", ""},
		{"PartitionKey or Timestamp", "", ""},
		{"Timestamp eq 'x'", "", ""},
		{"PartitionKey ne 1 and RowKey lt 1 and Timestamp le 'x'", "*:*", ""},
		{"not (PartitionKey ne 1)", "", ""},
		{"PartitionKey ge ''", "*:*", ""},
		{"false", "", ""},
		{"true and x eq 1", "*:*", "x eq 1"},
		{"Timestamp gt datetime'2020-01-01'", "*:*", "Timestamp gt datetime'2020-01-01T00:00:00Z'"},
	} {
		p := parse(t, tc.filter).Plan()
		require.Equal(t, tc.keys, p.Keys.show(), tc.filter)
		require.Equal(t, tc.rest, restText(p), tc.filter)
	}
}

// drawWhole draws a key of an entity.
func drawWhole(t *rapid.T, label string) Key {
	return Key{drawKey(t, label+" pk"), drawKey(t, label+" rk")}
}

// checkKeys requires that a set holds the keys that holds says, that it has its one form, and
// that every way through it finds the same.
func checkKeys(t *rapid.T, k Keys, universe []Key, holds func(Key) bool) {
	for i, b := range k {
		require.True(t, slices.IsSortedFunc(b.rks, entity.Compare[string, string]), k.show())
		require.False(t, i == 0 && len(b.rks) == 0, k.show())
		if i > 0 {
			require.Negative(t, entity.Compare(k[i-1].pk, b.pk), k.show())
			require.False(t, b.rks.equal(k[i-1].rks), k.show())
		}
	}
	universe = slices.Clone(universe)
	slices.SortFunc(universe, Key.Compare)
	universe = slices.Compact(universe)
	end, bounded := k.End()
	walk := k.Walk()
	var behind *Key // The first key that the row before says is inside.
	for _, key := range universe {
		inside := holds(key)
		require.Equal(t, inside, k.Contains(key.PK, key.RK), "%q in %s", key, k.show())
		if inside {
			require.True(t, !bounded || key.Compare(end) < 0, "%q is behind the end of %s", key, k.show())
			require.False(t, behind != nil && key.Compare(*behind) < 0, "%q is jumped over in %s", key, k.show())
		}
		first, ok := k.From(key)
		atFirst, atInside, atOK := walk.At(key.PK, key.RK)
		require.Equal(t, inside, atInside)
		require.Equal(t, ok, atOK)
		require.Equal(t, first, atFirst)
		if ok {
			require.GreaterOrEqual(t, first.Compare(key), 0)
			require.True(t, k.Contains(first.PK, first.RK), "%q from %q of %s", first, key, k.show())
			require.Equal(t, inside, first == key)
		}
		for _, o := range universe { // Nothing lies between.
			if holds(o) && o.Compare(key) >= 0 {
				require.True(t, ok && o.Compare(first) >= 0, "%q before %q from %q of %s", o, first, key, k.show())
			}
		}
		if behind = nil; inside {
			if first, jump, ok := walk.Behind(key.RK); jump {
				require.True(t, !ok || first.Compare(key) > 0)
				if !ok {
					first = Key{"\U0010ffff\U0010ffff\U0010ffff", ""}
				}
				behind = &first
			}
		}
	}
}

// The result does not depend on the plan: for any filter over any rows, the rows with keys in
// the plan that pass the rest are those that a simple evaluation finds among all.
//
// Capability: Clients: `$filter` of tables.
func TestPlanTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Key { return drawWhole(t, "row") }), 0, 12).Draw(t, "rows")
		b := entity.Build(nil)
		require.NoError(t, b.AddString("x", drawKey(t, "x")))
		v := drawVersion(t)
		f := filterOf(v, drawNode(t, 3))
		plan := f.Plan()
		matches := func(f *Filter, k Key) bool {
			ok, _, err := f.Matcher().Match(&tables.Entity{PK: k.PK, RK: k.RK, Timestamp: stamp, Props: b.Bytes()})
			require.NoError(t, err)
			return ok
		}
		for _, r := range rows {
			got := plan.Keys.Contains(r.PK, r.RK) && matches(plan.Rest, r)
			require.Equal(t, naive(v, f.root, r.PK, r.RK, b.Bytes()), got, "%s on %q: %s and %q", text(f.root), r, plan.Keys.show(), restText(plan))
		}
		checkKeys(t, plan.Keys, rows, func(k Key) bool { return plan.Keys.Contains(k.PK, k.RK) })
	})
}

// A filter on keys alone is a set of keys without a rest.
//
// Capability: Clients: `$filter` of tables.
func TestPlanOfKeysIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := drawNode(t, 4)
		var rename func(n *node)
		rename = func(n *node) {
			if n.name == "x" {
				n.name = entity.RowKey
			}
			for _, k := range n.kids {
				rename(k)
			}
		}
		rename(root)
		f := filterOf(drawVersion(t), root)
		plan := f.Plan()
		require.Nil(t, plan.Rest, "%s leaves %q", text(root), restText(plan))
		universe := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Key { return drawWhole(t, "key") }), 0, 12).Draw(t, "universe")
		checkKeys(t, plan.Keys, universe, func(k Key) bool {
			ok, _, err := f.Matcher().Match(&tables.Entity{PK: k.PK, RK: k.RK, Timestamp: stamp, Props: []byte{1, 0}})
			require.NoError(t, err)
			return ok
		})
	})
}

// A plan of any filter has rangesMax ranges at most, and making it is bounded; what was taken
// together is tested row by row.
func TestPlanIsBounded(t *testing.T) {
	chain := func(n int, format string) string {
		terms := make([]string, n)
		for i := range terms {
			terms[i] = strings.ReplaceAll(format, "%", fmt.Sprintf("%04d", i*7919%n))
		}
		return "(" + strings.Join(terms, " or ") + ")"
	}
	points := chain(800, "PartitionKey eq 'p%' and RowKey eq 'r%'")
	p := parse(t, points).Plan()
	require.Equal(t, 800, p.Keys.count())
	require.Nil(t, p.Rest)
	for name, filter := range map[string]string{
		"points":    chain(1200, "PartitionKey eq 'p%' and RowKey eq 'r%'"),
		"rows":      chain(3000, "RowKey eq '%'"),
		"product":   chain(900, "PartitionKey eq '%'") + " and " + chain(900, "RowKey eq '%'"),
		"shifted":   chain(600, "PartitionKey eq '%' and RowKey gt '%'") + " and " + chain(900, "RowKey eq '%'"),
		"excluded":  "not " + chain(2000, "RowKey eq '%'") + " and not " + chain(800, "PartitionKey eq '%'"),
		"deep":      strings.Repeat("not (x eq 1 or ", 100) + chain(1200, "RowKey eq '%'") + strings.Repeat(")", 100),
		"alternate": chain(400, "PartitionKey gt '%' and RowKey lt '%'") + " and not " + chain(400, "PartitionKey lt '%' and RowKey gt '%'"),
	} {
		f := parse(t, filter)
		pl := planner{column: entityColumn, required: map[*node]bounds{}}
		b := pl.bounds(f.root, true)
		require.Less(t, pl.work, 250_000, name)
		require.LessOrEqual(t, b.may.count(), 2*rangesMax+1, name) // A complement may have one more in each band.
		plan := f.Plan()
		require.Equal(t, name != "alternate", plan.Rest != nil, name)
		for _, k := range []Key{{"p0000", "r0000"}, {"0000", "0000"}, {"0010", "0100"}, {"0100", "0010"}, {"x", "0001"}, {"x", "y"}} {
			e := tables.Entity{PK: k.PK, RK: k.RK, Timestamp: stamp, Props: []byte{1, 0}}
			want, _, err := f.Matcher().Match(&e)
			require.NoError(t, err)
			left, _, err := plan.Rest.Matcher().Match(&e)
			require.NoError(t, err)
			require.Equal(t, want, plan.Keys.Contains(k.PK, k.RK) && left, "%s: %q", name, k)
		}
	}
}

// Hulls hold what the set holds, in as many ranges as there may be.
func TestHulls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := filterOf(drawVersion(t), drawNode(t, 4)).Plan().Keys
		n := rapid.IntRange(1, 5).Draw(t, "n")
		around := k.hulls(n)
		require.LessOrEqual(t, around.count(), n, "%s around %s", around.show(), k.show())
		universe := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Key { return drawWhole(t, "key") }), 0, 12).Draw(t, "universe")
		for _, key := range universe {
			require.True(t, !k.Contains(key.PK, key.RK) || around.Contains(key.PK, key.RK), "%q is not in %s around %s", key, around.show(), k.show())
		}
		checkKeys(t, around, universe, func(key Key) bool { return around.Contains(key.PK, key.RK) })
	})
}

// The key range of a shared access signature: from (spk, srk) to (epk, erk), both inclusive, in
// the order of a table (14.2), and what it leaves of a filter's keys.
func TestBetween(t *testing.T) {
	for _, tc := range []struct {
		from, to Edge
		want     string
	}{
		{Edge{}, Edge{}, "*:*"},
		{Edge{PK: "a", HasPK: true}, Edge{PK: "a", HasPK: true}, "'a':*"},
		{Edge{PK: "a", HasPK: true}, Edge{PK: "c", HasPK: true}, "[a,c+):*"},
		{Edge{PK: "a", RK: "m", HasPK: true, HasRK: true}, Edge{}, "'a':[m, [a+,:*"},
		{Edge{PK: "a", RK: "m", HasPK: true, HasRK: true}, Edge{PK: "c", RK: "d", HasPK: true, HasRK: true}, "'a':[m, [a+,c):* 'c':[,d+)"},
		{Edge{PK: "a", RK: "m", HasPK: true, HasRK: true}, Edge{PK: "a", RK: "p", HasPK: true, HasRK: true}, "'a':[m,p+)"},
		{Edge{PK: "a", RK: "m", HasPK: true, HasRK: true}, Edge{PK: "a", RK: "m", HasPK: true, HasRK: true}, "'a':'m'"},
		{Edge{}, Edge{HasPK: true, HasRK: true}, "'':''"},
		{Edge{PK: "c", HasPK: true}, Edge{PK: "a", HasPK: true}, ""},
	} {
		require.Equal(t, tc.want, Between(tc.from, tc.to).show())
	}
	p := parse(t, "PartitionKey ge 'a' and RowKey gt 'x'").Plan()
	allowed := Between(Edge{PK: "b", RK: "y", HasPK: true, HasRK: true}, Edge{PK: "c", HasPK: true})
	require.Equal(t, "'b':[y, [b+,c+):[x+,", p.Keys.Within(allowed).show())
	first, ok := p.Keys.Within(allowed).From(Key{"a", "secret"})
	require.True(t, ok)
	require.Equal(t, Key{"b", "y"}, first, "a token below what is allowed is cut to it")

	rapid.Check(t, func(t *rapid.T) {
		edge := func(label string) Edge {
			e := Edge{PK: drawKey(t, label), RK: drawKey(t, label), HasPK: rapid.Bool().Draw(t, label)}
			e.HasRK = e.HasPK && rapid.Bool().Draw(t, label)
			return e
		}
		from, to := edge("from"), edge("to")
		holds := func(k Key) bool {
			low, high := k.Compare(Key{from.PK, from.RK}), k.Compare(Key{to.PK, to.RK})
			if !from.HasRK {
				low = entity.Compare(k.PK, from.PK)
			}
			if !to.HasRK {
				high = entity.Compare(k.PK, to.PK)
			}
			return (!from.HasPK || low >= 0) && (!to.HasPK || high <= 0)
		}
		universe := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Key { return drawWhole(t, "key") }), 0, 12).Draw(t, "universe")
		allowed := Between(from, to)
		checkKeys(t, allowed, universe, holds)
		of := filterOf(drawVersion(t), drawNode(t, 3)).Plan().Keys
		checkKeys(t, of.Within(allowed), universe, func(k Key) bool { return holds(k) && of.Contains(k.PK, k.RK) })
	})
}

// The one key that the query of a batch may name.
func TestOne(t *testing.T) {
	for text, want := range map[string]bool{
		"PartitionKey eq 'a' and RowKey eq 'b'":                          true,
		"PartitionKey eq 'a' and RowKey eq 'b' and x eq 1":               true,
		"PartitionKey eq '' and RowKey eq ''":                            true,
		"PartitionKey eq 'a' and RowKey ge 'b' and RowKey le 'b'":        true,
		"PartitionKey eq 'a'":                                            false,
		"RowKey eq 'b'":                                                  false,
		"PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c')":       false,
		"(PartitionKey eq 'a' or PartitionKey eq 'c') and RowKey eq 'b'": false,
		"PartitionKey eq 'a' and RowKey eq 'b' and RowKey eq 'c'":        false,
		"PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'b\u0001'":  false,
		"": false,
	} {
		require.Equal(t, want, parse(t, text).Plan().Keys.One(), text)
	}
}

// For any filter and any key, the plan finds the row if the filter lets it through, a limit of keys
// takes away what lies outside and nothing else, and a walk goes on ahead of the key.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"PartitionKey eq 'a' or (PartitionKey eq 'b' and RowKey ge 'x')", "not (RowKey lt 'b') and x eq 'a'", "PartitionKey ne '😀'",
		"PartitionKey ge 'Football_7990' and PartitionKey lt 'Football_7991' or RowKey eq ''", "not (PartitionKey eq 'a' or x ne 'a' and RowKey gt '')",
	} {
		f.Add(seed, "a", "x", "a", "b")
	}
	f.Fuzz(func(t *testing.T, text, pk, rk, from, to string) {
		for _, s := range []string{pk, rk, from, to} {
			if !utf8.ValidString(s) {
				return
			}
		}
		wanted, err := Parse(today, text)
		if err != nil {
			return
		}
		b := entity.Build(nil)
		require.NoError(t, b.AddString("x", "a"))
		matches := func(f *Filter) bool {
			ok, _, err := f.Matcher().Match(&tables.Entity{PK: pk, RK: rk, Timestamp: stamp, Props: b.Bytes()})
			require.NoError(t, err)
			return ok
		}
		plan := wanted.Plan()
		require.Equal(t, matches(wanted), plan.Keys.Contains(pk, rk) && matches(plan.Rest))
		limited := plan.Keys.Within(Between(Edge{PK: from, RK: to, HasPK: true, HasRK: true}, Edge{PK: to, RK: from, HasPK: true, HasRK: true}))
		key := Key{pk, rk}
		inside := key.Compare(Key{from, to}) >= 0 && key.Compare(Key{to, from}) <= 0
		require.Equal(t, plan.Keys.Contains(pk, rk) && inside, limited.Contains(pk, rk))
		if first, ok := limited.From(key); ok {
			require.GreaterOrEqual(t, first.Compare(key), 0)
			require.True(t, limited.Contains(first.PK, first.RK))
			end, bounded := limited.End()
			require.True(t, !bounded || first.Compare(end) < 0)
		}
	})
}
