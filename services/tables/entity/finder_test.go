package entity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ofEqualLength are pairs of names that differ in their letters alone.
func ofEqualLength() map[string]string {
	c, d := strings.Repeat("c", 127), strings.Repeat("d", 128)
	pairs := map[string]string{"a": "b", "x1": "x2", "ee": "ff", "m0": "m1", c: c[1:] + "b", d: d[1:] + "e"}
	for a, b := range pairs {
		pairs[b] = a
	}
	return pairs
}

// drawValue draws a value of any type: of lengths whose own length is one byte, two or three, and some that look like a
// property with one of the names.
func drawValue(t *rapid.T, name string) Property {
	b := Build(nil)
	var err error
	switch Type(rapid.IntRange(int(String), int(Binary)).Draw(t, "type")) {
	case String:
		err = b.AddString(name, strings.Repeat("v", rapid.SampledFrom([]int{0, 1, 127, 128, 1000, 16383, 16384}).Draw(t, "length")))
	case Binary:
		err = b.AddBinary(name, []byte(rapid.SampledFrom([]string{"", "v", "\x05\x01a\x01", "\x05\x01a\x00", "\x02\x02x1aaaa"}).Draw(t, "bytes")))
	case Boolean:
		err = b.AddBoolean(name, rapid.Bool().Draw(t, "bool"))
	case Int32:
		err = b.AddInt32(name, rapid.Int32().Draw(t, "i"))
	case GUID:
		err = b.AddGUID(name, [16]byte{1})
	default:
		err = b.AddDateTime(name, TicksMin)
	}
	p, _, _ := Find(b.Bytes(), name)
	if err != nil || p.Type == 0 {
		t.Fatal(err)
	}
	return p
}

// drawNeighbor draws the properties of the next row of a table: mostly, but for one thing, those of the row before.
func drawNeighbor(t *rapid.T, props []Property, pairs map[string]string) []Property {
	names := make([]string, 0, len(pairs))
	for name := range pairs {
		names = append(names, name)
	}
	slices.Sort(names)
	has := func(name string) bool {
		return slices.ContainsFunc(props, func(p Property) bool { return string(p.Name) == name })
	}
	props = slices.Clone(props)
	change := rapid.IntRange(0, 7).Draw(t, "change")
	if len(props) == 0 {
		change = 6 + change%2
	}
	i := rapid.IntRange(0, max(0, len(props)-1)).Draw(t, "i")
	switch change {
	case 0, 1: // Nothing.
	case 2:
		props[i] = drawValue(t, string(props[i].Name))
	case 3:
		if other := pairs[string(props[i].Name)]; !has(other) {
			props[i].Name = []byte(other)
		}
	case 4:
		props = slices.Delete(props, i, i+1)
	case 5:
		j := rapid.IntRange(0, len(props)-1).Draw(t, "j")
		props[i], props[j] = props[j], props[i]
	case 6:
		if name := rapid.SampledFrom(names).Draw(t, "name"); !has(name) {
			props = slices.Insert(props, i, drawValue(t, name))
		}
	case 7:
		props = nil
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 8, rapid.ID[string]).Draw(t, "all") {
			props = append(props, drawValue(t, name))
		}
	}
	return props
}

// drawDamage damages a list, or not.
func drawDamage(t *rapid.T, list []byte) (damaged []byte, is bool) {
	switch rapid.IntRange(0, 7).Draw(t, "damage") {
	case 0:
		list[rapid.IntRange(0, len(list)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
	case 1:
		list = list[:rapid.IntRange(0, len(list)-1).Draw(t, "cut")]
	case 2:
		list = append(list, 0)
	default:
		return list, false
	}
	return list, true
}

// Whatever the lists before, a finder finds in a list what one finds that never saw another, for the same work and with
// the same fault; and that is what Next comes upon. In a list that is damaged anywhere it finds nothing else.
func TestFinderTwin(t *testing.T) {
	pairs := ofEqualLength()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", strings.Repeat("d", 128), "ee", "x1"}[rapid.IntRange(0, 3).Draw(t, "from"):]
		if rapid.IntRange(0, 3).Draw(t, "many") == 0 {
			for i := range 2 * fewNames {
				names = append(names, fmt.Sprintf("m%d", i))
			}
		}
		places := map[string]int{}
		for i, name := range names {
			places[name] = i
		}
		f := NewFinder(names, places)
		var props []Property
		for range rapid.IntRange(1, 8).Draw(t, "lists") {
			props = drawNeighbor(t, props, pairs)
			b := Build(nil)
			for _, p := range props {
				b.add(p)
			}
			list, damaged := drawDamage(t, b.Bytes())
			first, twice, err := walkAll(list, places)
			if twice { // No writer stores that; which of them is found is open.
				_, _ = f.Find(list)
				continue
			}
			fresh := NewFinder(names, places)
			want, wantErr := fresh.Find(list)
			walked, gotErr := f.Find(list)
			if walked != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%q: %d, %v; want %d, %v", list, walked, gotErr, want, wantErr)
			}
			if gotErr != nil && (!damaged || !errors.Is(gotErr, ErrMalformed)) {
				t.Fatalf("%q: %v", list, gotErr)
			}
			for i, name := range names {
				got, want := fmt.Sprintf("%q", f.Get(i)), fmt.Sprintf("%q", fresh.Get(i))
				if got != want {
					t.Fatalf("%q: %s is %s, want %s", list, name, got, want)
				}
				next, there := first[name]
				if found := fresh.Get(i) != nil; there && found && want != fmt.Sprintf("%q", &next) || err == nil && there != found {
					t.Fatalf("%q: %s is %s, by Next %v %q", list, name, want, there, next)
				}
			}
		}
	})
}

// walkAll walks a list with Next, and reports whether one of the names is in it twice.
func walkAll(list []byte, places map[string]int) (first map[string]Property, twice bool, err error) {
	first = map[string]Property{}
	r := Read(list)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		name := string(p.Name)
		_, known := first[name]
		_, wanted := places[name]
		twice = twice || known && wanted
		if !known {
			first[name] = p
		}
	}
	return first, twice, r.Err()
}

// The form of a list is that of the next one only if types, lengths of names and number allow it, and the name is where
// it was: then it is not walked.
func TestFinderKnowsTheForm(t *testing.T) {
	list := func(add ...func(*Builder) error) []byte {
		b := Build(nil)
		for _, f := range add {
			if err := f(&b); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	text := func(name string, n int) func(*Builder) error {
		return func(b *Builder) error { return b.AddString(name, strings.Repeat("v", n)) }
	}
	number := func(name string) func(*Builder) error {
		return func(b *Builder) error { return b.AddInt32(name, 7) }
	}
	before := list(text("name", 5), number("Rating"), text("more", 9))
	for _, tc := range []struct {
		what  string
		list  []byte
		again bool
	}{
		{"equal", before, true},
		{"another length", list(text("name", 900), number("Rating"), text("more", 9)), true},
		{"other names beside it", list(text("eman", 5), number("Rating"), number("x")), true},
		{"nothing behind it", list(text("name", 5), number("Rating")), true},
		{"another name", list(text("name", 5), number("Gnitar"), number("Rating")), false},
		{"another type", list(text("name", 5), text("Rating", 4), text("more", 9)), false},
		{"another type before", list(number("name"), number("Rating"), text("more", 9)), false},
		{"a longer name before", list(text("names", 5), number("Rating"), text("more", 9)), false},
		{"further behind", list(text("name", 5), text("more", 9), number("Rating")), false},
		{"further ahead", list(number("Rating"), text("name", 5), text("more", 9)), false},
		{"without it", list(text("name", 5)), false},
		{"a very long value", list(text("name", 20000), number("Rating")), false},
		{"cut off", before[:len(before)-20], false},
		{"more behind the last", append(list(text("name", 5), number("Rating")), 0), false},
	} {
		f := NewFinder([]string{"Rating"}, nil)
		if walked, err := f.Find(before); walked != 2 || err != nil {
			t.Fatal(walked, err)
		}
		if got := f.findAgain(tc.list); got != tc.again {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}

// Where the list before lacked a name, nothing that is skipped may be that, and nothing may follow.
func TestFinderKnowsWhatIsMissing(t *testing.T) {
	before := listOf(t, "name", "Rating", "more")
	for _, tc := range []struct {
		what  string
		list  []byte
		again bool
	}{
		{"equal", before, true},
		{"another name of its length", listOf(t, "eman", "Rating", "more"), true},
		{"it", listOf(t, "gone", "Rating", "more"), false},
		{"it behind the last", listOf(t, "name", "Rating", "gone"), false},
		{"one more", listOf(t, "name", "Rating", "more", "gone"), false},
		{"one less", listOf(t, "name", "Rating"), false},
	} {
		f := NewFinder([]string{"Rating", "gone"}, nil)
		if walked, err := f.Find(before); walked != 3 || err != nil {
			t.Fatal(walked, err)
		}
		if got := f.findAgain(tc.list); got != tc.again {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}

// A fault that a walk comes upon is found in a list of the form of the one before, too.
func TestFinderSeesFaults(t *testing.T) {
	for _, tc := range []struct{ what, before, list string }{
		{"a Boolean of 2", "\x01\x01\x05\x01t\x01", "\x01\x01\x05\x01t\x02"},
		{"a longer form of a length", "\x01\x02\x01\x01a\x01v\x05\x01t\x01", "\x01\x02\x01\x01a\x81\x00v\x05\x01t\x01"},
		{"more than are counted", "\x01\x02\x01\x01a\x01v\x05\x01t\x01", "\x01\x01\x01\x01a\x01v\x05\x01t\x01"},
		{"no type behind a long name", "\x01\x02\x05\x80\x01" + strings.Repeat("n", 128) + "\x00\x05\x01t\x01", "\x01\x02\x00\x00\x05\x01t\x01"},
	} {
		f := NewFinder([]string{"t"}, nil)
		if _, err := f.Find([]byte(tc.before)); err != nil || f.Get(0) == nil {
			t.Errorf("%s: %v", tc.what, err)
		}
		if _, err := f.Find([]byte(tc.list)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
	// No writer stores one name twice: the first one counts.
	f := NewFinder([]string{"a", "b"}, nil)
	for range 2 {
		_, err := f.Find([]byte("\x01\x03\x05\x01a\x00\x05\x01a\x01\x05\x01b\x01"))
		if err != nil || f.Get(0).Boolean() || !f.Get(1).Boolean() {
			t.Error(f.Get(0), f.Get(1), err)
		}
	}
}

// listOf is a list of numbers.
func listOf(t testing.TB, names ...string) []byte {
	b := Build(nil)
	for _, name := range names {
		if err := b.AddInt32(name, 7); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// BenchmarkFinder is one list of ten properties, the last of which is wanted, behind one of the same form and
// behind another one.
func BenchmarkFinder(b *testing.B) {
	one, other := Build(nil), Build(nil)
	for i := range 10 {
		name := fmt.Sprintf("Property%d", i)
		if err := errors.Join(one.AddString(name, "a text"), other.AddInt32(name, 7)); err != nil {
			b.Fatal(err)
		}
	}
	for name, lists := range map[string][2][]byte{"same": {one.Bytes(), one.Bytes()}, "mixed": {one.Bytes(), other.Bytes()}} {
		b.Run(name, func(b *testing.B) {
			f := NewFinder([]string{"Property9"}, nil)
			for i := 0; b.Loop(); i++ {
				if _, err := f.Find(lists[i%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
