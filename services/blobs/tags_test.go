package blobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/services/lease"
	"antipode/services/storageerr"
)

// Limits of tags, each reached and passed by one; they are sorted, and what was sent stays as it is.
//
// Capability: Blobs: Tags and tiers.
func TestCheckTags(t *testing.T) {
	many := func(n int) (out []Pair) {
		for i := range n {
			out = append(out, Pair{Name: fmt.Sprint("k", i)})
		}
		return out
	}
	long := func(n, v int) []Pair { return []Pair{{Name: strings.Repeat("k", n), Value: strings.Repeat("v", v)}} }
	one := func(name, value string) []Pair { return []Pair{{Name: name, Value: value}} }
	for _, c := range []struct {
		tags []Pair
		err  error
	}{
		{nil, nil},
		{many(10), nil},
		{many(11), storageerr.TagsTooLarge},
		{long(128, 256), nil},
		{long(129, 0), storageerr.TagsTooLarge},
		{long(1, 257), storageerr.TagsTooLarge},
		{one("", "v"), storageerr.EmptyTagName},
		{one("azAZ09 +-./:=_", "azAZ09 +-./:=_"), nil},
		{one("a", ""), nil},
		{[]Pair{{Name: "a"}, {Name: "A"}}, nil},
		{[]Pair{{Name: "a", Value: "1"}, {Name: "b"}, {Name: "a", Value: "2"}}, storageerr.DuplicateTagNames},
	} {
		got, err := CheckTags(c.tags)
		require.ErrorIs(t, err, c.err, "%v", c.tags)
		require.Equal(t, c.err == nil, err == nil)
		if err == nil {
			require.ElementsMatch(t, c.tags, got)
			require.NoError(t, (&Blob{Tags: got}).checkFields())
		}
	}
	for _, c := range "\x00\n!\"#$%&'()*,;<>?@[\\]^`{|}~\x7fäß" {
		for _, tags := range [][]Pair{one(string(c), ""), one("a", string(c))} {
			_, err := CheckTags(tags)
			require.ErrorIs(t, err, storageerr.InvalidTag, "%q", c)
		}
	}
	_, err := CheckTags(one("a", "\xff"))
	require.ErrorIs(t, err, storageerr.InvalidTag)
	sent := []Pair{{Name: "b"}, {Name: "a"}}
	got, err := CheckTags(sent)
	require.NoError(t, err)
	require.Equal(t, []Pair{{Name: "a"}, {Name: "b"}}, got)
	require.Equal(t, "b", sent[0].Name)
}

// Tags are replaced as a whole, leave ETag, content, tier and lease, and end with an overwrite.
//
// Capability: Blobs: Tags and tiers.
func TestSetTags(t *testing.T) {
	s := &scanned{state: state{}}
	w := put("a", "x")
	w.Blob.Tier, w.Blob.Tags = TierCool, []Pair{{Name: "a", Value: "1"}}
	require.NoError(t, s.commit(t, w, second))
	id := lease.ID{1}
	require.NoError(t, s.commit(t, acquire(id, 60), 2*second))
	before, err := GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, w.Blob.Tags, before.Tags)
	set := &SetTags{Command: Command{Name: testName("a"), Guard: Guard{LeaseNeeded: true}}, Tags: []Pair{{Name: "b", Value: "2"}}}
	require.ErrorIs(t, s.commit(t, set, 3*second), storageerr.LeaseIDMissing)
	set.Lease = &id
	require.NoError(t, s.commit(t, set, 3*second))
	after, err := GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, set.Tags, after.Tags)
	after.Tags = before.Tags
	require.Equal(t, before, after)
	require.NoError(t, s.commit(t, &SetMetadata{Command: set.Command}, 4*second))
	after, err = GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, set.Tags, after.Tags)
	over := put("a", "y")
	over.Lease = &id
	require.NoError(t, s.commit(t, over, 5*second))
	after, err = GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Empty(t, after.Tags)
	require.ErrorIs(t, s.commit(t, &SetTags{Command: Command{Name: testName("none")}}, 6*second), storageerr.BlobNotFound)
}

// Conditions on tags, and what they are of a blob with a='1' b='2' "c d"='x', of one without tags, and of none.
//
// Capability: Blobs: Tags and tiers.
func TestTagConditions(t *testing.T) {
	tags := []Pair{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c d", Value: "x"}}
	for text, want := range map[string][2]bool{
		`a='1'`:                      {true, false},
		`a = '2'`:                    {false, false},
		`"a"='1'`:                    {true, false},
		`A='1'`:                      {false, false},
		`"c d" = 'x'`:                {true, false},
		`"c d" = 'X'`:                {false, false},
		`a<>'1'`:                     {false, true},
		`a <> '2'`:                   {true, true},
		`none='1'`:                   {false, false},
		`none<>'1'`:                  {true, true},
		`a>'0'`:                      {true, false},
		`a>'1'`:                      {false, false},
		`a>='1'`:                     {true, false},
		`a>='11'`:                    {false, false},
		`a<'10'`:                     {true, false},
		`a<'1'`:                      {false, false},
		`a<='1'`:                     {true, false},
		`a<='0'`:                     {false, false},
		`none<='~'`:                  {false, false},
		`a='1' AND b='2'`:            {true, false},
		`a='1' and b='1'`:            {false, false},
		`a='1'AND b='2'`:             {true, false},
		`a='0' OR b='2'`:             {true, false},
		`a='0' or b='0'`:             {false, false},
		`a='1' OR b='0' AND a='0'`:   {true, false},
		`(a='1' OR b='0') AND a='0'`: {false, false},
		`a='0' AND b='0' OR a='1'`:   {true, false},
		`a='0' AND (b='0' OR a='1')`: {false, false},
		`((a='1'))`:                  {true, false},
		`a=''`:                       {false, false},
		`a>''`:                       {true, false},
		`"and"<>'1' AND "OR"<>'2'`:   {true, true},
		`order<>'1' OR android='1'`:  {true, true},
		`_1='x' OR 1a<>'1'`:          {true, true},
		`  a  =  '1'  `:              {true, false},
		strings.Repeat("a='0' OR ", 10) + "a='1'":                   {true, false},
		strings.Repeat("(", 10) + "a='1'" + strings.Repeat(")", 10): {true, false},
	} {
		c, err := ParseTagCondition(text)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]bool{c.Holds(tags), c.Holds(nil)}, text)
	}
	for _, text := range []string{
		"", " ", "a", "a=", "a='1", "a=1", "='1'", "a=='1'", "a='1' b='2'", "a='1' AND", "AND a='1'", "a='1' AND AND b='1'", "and='1'", "OR='1'",
		"(a='1'", "a='1')", "()", `a="1"`, `'a'='1'`, `""='1'`, `"a='1'`, "@container='c'", "a!='1'", "NOT a='1'", "a='1' XOR b='1'", "a>'1'<'2'",
		"a.b='1'", "ä='1'", "a='1'ANDb='1'", "a<>'1'\n", strings.Repeat("a='0' OR ", 11) + "a='1'",
		strings.Repeat("(", 11) + "a='1'" + strings.Repeat(")", 11), strings.Repeat("(", 100_000),
	} {
		_, err := ParseTagCondition(text)
		require.ErrorIs(t, err, ErrTagCondition, "%.50s", text)
	}
	require.True(t, (*TagCondition)(nil).Holds(nil))
}

// text writes a condition with every parenthesis.
func (c *TagCondition) text() string {
	if len(c.parts) == 0 {
		return `"` + c.name + `"` + c.operator + `'` + c.value + `'`
	}
	var out []string
	for _, p := range c.parts {
		out = append(out, "("+p.text()+")")
	}
	return strings.Join(out, map[bool]string{true: " OR ", false: " AND "}[c.any])
}

// What a condition is, written with every parenthesis, is the same condition; no text makes the parser fail in another way.
func FuzzTagCondition(f *testing.F) {
	for _, seed := range []string{`a='1' AND (b<>'2' OR "c d">='x')`, "((a='1'))", "a<'", "@container = 'c'", `"`, "a='1' OR"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseTagCondition(text)
		if err != nil {
			require.ErrorIs(t, err, ErrTagCondition)
			return
		}
		c.Holds(nil)
		again, err := ParseTagCondition(c.text())
		if err != nil && strings.Count(c.text(), "(") > tagOperatorsMax {
			return // Those parentheses are too deep.
		}
		require.NoError(t, err, c.text())
		require.Equal(t, c, again)
	})
}

// A condition on tags is part of the guard: with it a write and a test of what is there are one step, and it goes before the lease.
func TestTagConditionOfGuard(t *testing.T) {
	s := &scanned{state: state{}}
	must := func(text string) Guard {
		c, err := ParseTagCondition(text)
		require.NoError(t, err)
		return Guard{Tags: c, LeaseNeeded: true}
	}
	w := put("a", "x")
	w.Guard = must("k='1'")
	require.ErrorIs(t, s.commit(t, w, second), storageerr.ConditionNotMet, "a blob that does not exist has no tags")
	w.Guard = must("k<>'1'")
	w.Blob.Tags = []Pair{{Name: "k", Value: "1"}}
	require.NoError(t, s.commit(t, w, second))
	require.ErrorIs(t, s.commit(t, w, 2*second), storageerr.ConditionNotMet)
	require.NoError(t, s.commit(t, acquire(lease.ID{1}, 60), 2*second))
	require.ErrorIs(t, s.commit(t, w, 3*second), storageerr.ConditionNotMet)
	w.Guard = must("k='1'")
	require.ErrorIs(t, s.commit(t, w, 3*second), storageerr.LeaseIDMissing)

	read := must("k='2'")
	read.Conditions = &asked{answer: storageerr.NotModified}
	require.ErrorIs(t, read.Check(State{Tags: w.Blob.Tags}, second, lease.OfBlob()), storageerr.ConditionNotMet, "412 goes before 304")
	read.Tags = must("k='1'").Tags
	require.ErrorIs(t, read.Check(State{Tags: w.Blob.Tags}, second, lease.OfBlob()), storageerr.NotModified)
}

// Random conditions mean what a slow evaluation says.
func TestTagConditionsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := map[string]string{}
		var pairs []Pair
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching("[ab]"), rapid.ID[string]).Draw(t, "names") {
			tags[name] = rapid.StringMatching("[12]?").Draw(t, "value")
			pairs = append(pairs, Pair{Name: name, Value: tags[name]})
		}
		var text string
		want := false
		for i := range rapid.IntRange(1, 3).Draw(t, "alternatives") {
			all := true
			if i > 0 {
				text += " OR "
			}
			for j := range rapid.IntRange(1, 3).Draw(t, "terms") {
				name, value := rapid.StringMatching("[ab]").Draw(t, "name"), rapid.StringMatching("[12]?").Draw(t, "with")
				op := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(t, "operator")
				if j > 0 {
					text += " AND "
				}
				text += fmt.Sprintf("%s %s '%s'", name, op, value)
				v, there := tags[name]
				holds := map[string]bool{
					"=": v == value, "<>": v != value, "<": v < value, "<=": v <= value, ">": v > value, ">=": v >= value,
				}[op]
				all = all && (there && holds || !there && op == "<>")
			}
			want = want || all
		}
		c, err := ParseTagCondition(text)
		require.NoError(t, err, text)
		require.Equal(t, want, c.Holds(pairs), "%s of %v", text, pairs)
	})
}
