package entity

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"antipode/services/storageerr"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

// golden is the list that docs/format/entity.md spells out, and one of every type.
func golden(t *testing.T) []string {
	var lines []string
	add := func(name string, fill func(b *Builder) error) {
		b := Build(nil)
		if err := fill(&b); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+" "+hex.EncodeToString(b.Bytes()))
	}
	add("empty", func(*Builder) error { return nil })
	add("example", func(b *Builder) error {
		return errors.Join(b.AddInt32("Rating", 9), b.AddInt64("Big", 9007199254740993), b.AddString("Text", ".NET"))
	})
	add("every-type", func(b *Builder) error {
		return errors.Join(
			b.AddString("s", "a\x00é😀"), b.AddString("empty", ""),
			b.AddInt32("i", math.MinInt32), b.AddInt64("l", -1), b.AddDouble("d", 1.5),
			b.AddDouble("nan", math.NaN()), b.AddBoolean("t", true), b.AddBoolean("f", false),
			b.AddDateTime("min", TicksMin), b.AddDateTime("max", TicksMax),
			b.AddGUID("g", [16]byte{0xc9, 0xda, 0x64, 0x55, 15: 0xff}), b.AddBinary("b", []byte{0, 1, 0xff}),
			b.AddInt32("ꀕ_1", 1))
	})
	return lines
}

// The stored form never changes: lists written today equal the golden file, and the
// golden file still reads.
func TestGolden(t *testing.T) {
	const path = "testdata/entity.golden"
	got := strings.Join(golden(t), "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("stored form changed:\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(string(want)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		list, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate("", "", list); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// copyList reads a list and writes it again.
func copyList(list []byte) ([]byte, error) {
	b := Build(nil)
	r := Read(list)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		b.add(p)
	}
	return b.Bytes(), r.Err()
}

func drawProperty(t *rapid.T, b *Builder, name string) {
	var err error
	switch rapid.SampledFrom([]Type{String, Int32, Int64, Double, Boolean, DateTime, GUID, Binary}).Draw(t, "type") {
	case String:
		err = b.AddString(name, rapid.String().Draw(t, "s"))
	case Int32:
		err = b.AddInt32(name, rapid.Int32().Draw(t, "i"))
	case Int64:
		err = b.AddInt64(name, rapid.Int64().Draw(t, "l"))
	case Double:
		err = b.AddDouble(name, rapid.Float64().Draw(t, "d"))
	case Boolean:
		err = b.AddBoolean(name, rapid.Bool().Draw(t, "b"))
	case DateTime:
		err = b.AddDateTime(name, rapid.Int64Range(TicksMin, TicksMax).Draw(t, "t"))
	case GUID:
		err = b.AddGUID(name, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "g")))
	case Binary:
		err = b.AddBinary(name, rapid.SliceOf(rapid.Byte()).Draw(t, "x"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func drawList(t *rapid.T, label string) []byte {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z_ꀕé][A-Za-z0-9_]{0,3}`), 0, 12, rapid.ID[string]).Draw(t, label)
	b := Build(nil)
	for _, name := range names {
		drawProperty(t, &b, name)
	}
	return b.Bytes()
}

// What is written is valid, and reads back to the same bytes.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, "list")
		if err := Validate("p", "r", list); err != nil {
			t.Fatal(err)
		}
		again, err := copyList(list)
		if err != nil || !bytes.Equal(list, again) {
			t.Fatalf("%x read back as %x, %v", list, again, err)
		}
		for cut := range list {
			if _, err := copyList(list[:cut]); !errors.Is(err, ErrMalformed) {
				t.Fatalf("cut at %d of %d: %v", cut, len(list), err)
			}
		}
	})
}

// Values come back as they were put in, and a list may stand behind other bytes.
func TestBuilderValues(t *testing.T) {
	b := Build([]byte("header"))
	guid := [16]byte{1, 2, 3}
	err := errors.Join(b.AddString("s", "x"), b.AddInt32("i", -5), b.AddInt64("l", math.MinInt64), b.AddDouble("d", -0.5),
		b.AddBoolean("t", true), b.AddDateTime("w", TicksMax), b.AddGUID("g", guid), b.AddBinary("b", []byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	list := b.Bytes()[len("header"):]
	if string(b.Bytes()[:6]) != "header" || b.Len() != 8 {
		t.Fatalf("%q, %d properties", b.Bytes(), b.Len())
	}
	get := func(name string) Property {
		p, found, err := Find(list, name)
		if !found || err != nil {
			t.Fatalf("%s: %v %v", name, found, err)
		}
		return p
	}
	if string(get("s").Value) != "x" || get("i").Int32() != -5 || get("l").Int64() != math.MinInt64 || get("d").Double() != -0.5 ||
		!get("t").Boolean() || get("w").DateTime() != TicksMax || get("g").GUID() != guid || get("b").Value[0] != 7 {
		t.Errorf("values differ: %x", list)
	}
	if _, found, err := Find(list, "S"); found || err != nil {
		t.Errorf("names are case-sensitive: %v %v", found, err)
	}
}

// Malformed lists give an error, not a value and not a panic.
func TestMalformed(t *testing.T) {
	for name, list := range map[string]string{
		"nothing": "", "version alone": "\x01", "other version": "\x02\x00", "trailing": "\x01\x00\x00",
		"missing": "\x01\x01", "type 0": "\x01\x01\x00\x01a", "type 9": "\x01\x01\x09\x01a", "long length": "\x01\x01\x01\x81\x00a\x00",
		"boolean 2": "\x01\x01\x05\x01a\x02", "date 0": "\x01\x01\x06\x01a\x00\x00\x00\x00\x00\x00\x00\x00",
		"short": "\x01\x01\x02\x01a\x00", "name beyond": "\x01\x01\x02\x09a", "value beyond": "\x01\x01\x01\x01a\x05abc",
		"huge": "\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
	} {
		if _, err := copyList([]byte(list)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if n := Size("", "", []byte(list)); n != math.MaxInt {
			t.Errorf("%s has size %d", name, n)
		}
	}
}

// Merge replaces and adds by name, keeps the rest, and equals a merge of maps.
func TestMergeTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, patch := drawList(t, "old"), drawList(t, "patch")
		merged, err := Merge(old, patch)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, list := range [][]byte{old, patch} {
			r := Read(list)
			for p, ok := r.Next(); ok; p, ok = r.Next() {
				want[string(p.Name)] = p.Type.String() + string(p.Value)
			}
		}
		r := Read(merged)
		if r.Len() != len(want) {
			t.Fatalf("%d properties, want %d", r.Len(), len(want))
		}
		for p, ok := r.Next(); ok; p, ok = r.Next() {
			if want[string(p.Name)] != p.Type.String()+string(p.Value) {
				t.Fatalf("%s is %s %x", p.Name, p.Type, p.Value)
			}
		}
	})
}

// A.14, A.31: 252 properties are the limit also for the result of a Merge; a merge may
// change types; one without properties changes nothing.
func TestMergeLimits(t *testing.T) {
	full := Build(nil)
	for i := range PropertiesMax {
		if err := full.AddInt32("p"+strings.Repeat("x", i), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := full.AddInt32("one", 1); !errors.Is(err, storageerr.TooManyProperties) {
		t.Errorf("property 253: %v", err)
	}
	more, same, none := Build(nil), Build(nil), Build(nil)
	if err := errors.Join(more.AddInt32("q", 1), same.AddString("p", "text")); err != nil {
		t.Fatal(err)
	}
	if _, err := Merge(full.Bytes(), more.Bytes()); !errors.Is(err, storageerr.TooManyProperties) {
		t.Errorf("merge to 253: %v", err)
	}
	merged, err := Merge(full.Bytes(), same.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if p, _, _ := Find(merged, "p"); p.Type != String {
		t.Errorf("type is %s after the merge", p.Type)
	}
	if merged, err = Merge(full.Bytes(), none.Bytes()); err != nil || !bytes.Equal(merged, full.Bytes()) {
		t.Errorf("empty merge: %v", err)
	}
	if _, err = Merge([]byte{9}, none.Bytes()); !errors.Is(err, ErrMalformed) {
		t.Errorf("malformed old: %v", err)
	}
	if _, err = Merge(none.Bytes(), nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("malformed patch: %v", err)
	}
}

// A.18 and the published formula of 4.6.
func TestSize(t *testing.T) {
	b := Build(nil)
	err := errors.Join(b.AddString("é", "😀a"), b.AddBinary("bin", make([]byte, 10)), b.AddInt32("i", 1), b.AddInt64("l", 1),
		b.AddDouble("d", 1), b.AddBoolean("t", true), b.AddDateTime("w", TicksMin), b.AddGUID("g", [16]byte{}))
	if err != nil {
		t.Fatal(err)
	}
	want := 4 + 2*(2+1) + (8 + 2 + 2*3 + 4) + (8 + 6 + 14) + (10 + 4) + (10 + 8) + (10 + 8) + (10 + 1) + (10 + 8) + (10 + 16)
	if n := Size("pk", "r", b.Bytes()); n != want {
		t.Errorf("size %d, want %d", n, want)
	}
	full := Build(nil)
	for i := range 16 {
		if err := full.AddBinary(strings.Repeat("b", i+1), make([]byte, BinaryBytesMax)); err != nil {
			t.Fatal(err)
		}
		err := CheckSize("p", "r", full.Bytes())
		if want := i == 15; errors.Is(err, storageerr.EntityTooLarge) != want {
			t.Errorf("%d binaries: %v", i+1, err)
		}
	}
	if err := Validate("p", "r", full.Bytes()); !errors.Is(err, storageerr.EntityTooLarge) {
		t.Errorf("validate: %v", err)
	}
}

// The quick answer of CheckSize never lets through what the formula refuses.
func TestCheckSizeTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Build(nil)
		for i := range rapid.IntRange(1, 40).Draw(t, "n") {
			n := rapid.IntRange(0, StringUnitsMax).Draw(t, "len")
			if err := b.AddString(strings.Repeat("n", i+1), strings.Repeat("x", n)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := CheckSize("p", "r", b.Bytes()) != nil, Size("p", "r", b.Bytes()) > SizeMax; got != want {
			t.Fatalf("refused %v, want %v", got, want)
		}
	})
}

// SizeBound is never below Size, and not far above it.
func TestSizeBoundTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Build(nil)
		for i := range rapid.IntRange(0, 20).Draw(t, "n") {
			name := "n" + strings.Repeat("x", i)
			var err error
			switch Type(rapid.IntRange(int(String), int(Binary)).Draw(t, "type")) {
			case String:
				err = b.AddString(name, rapid.String().Draw(t, "text"))
			case Boolean:
				err = b.AddBoolean(name, true)
			case Int32:
				err = b.AddInt32(name, 1)
			case GUID:
				err = b.AddGUID(name, [16]byte{})
			case Binary:
				err = b.AddBinary(name, make([]byte, rapid.IntRange(0, 200).Draw(t, "bytes")))
			default:
				err = b.AddInt64(name, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		pk, rk := rapid.String().Draw(t, "pk"), rapid.String().Draw(t, "rk")
		size, bound := Size(pk, rk, b.Bytes()), SizeBound(pk, rk, b.Bytes())
		if list := Read(b.Bytes()); bound < size || bound > 3*size+20*list.Len() {
			t.Fatalf("%d for %d", bound, size)
		}
	})
}

// A.15, A.17: limits of one property, each with its row.
func TestPropertyLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
	}{
		{"a", nil},
		{"_x9", nil},
		{"ꀕ", nil},
		{"Größe", nil},
		{strings.Repeat("n", 255), nil},
		{strings.Repeat("é", 255), nil},
		{strings.Repeat("n", 256), storageerr.PropertyNameTooLong},
		{strings.Repeat("é", 256), storageerr.PropertyNameTooLong},
		{"", storageerr.PropertyNameInvalid},
		{"a-b", storageerr.PropertyNameInvalid},
		{"a b", storageerr.PropertyNameInvalid},
		{"a.b", storageerr.PropertyNameInvalid},
		{"9a", storageerr.PropertyNameInvalid},
		{"a:b", storageerr.PropertyNameInvalid},
		{"😀", storageerr.PropertyNameInvalid},
		{"\xff", storageerr.PropertyNameInvalid},
		{"a\u0301", nil},
		{"\u0301a", storageerr.PropertyNameInvalid},
		{"ª", storageerr.PropertyNameInvalid},
		{PartitionKey, storageerr.PropertyNameInvalid},
		{"partitionkey", nil},
	} {
		b := Build(nil)
		if err := b.AddInt32(tc.name, 1); !errors.Is(err, tc.err) {
			t.Errorf("name %.20q: %v, want %v", tc.name, err, tc.err)
		} else if err != nil && len(b.Bytes()) != headerLen {
			t.Errorf("name %.20q left a trace", tc.name)
		}
	}
	b := Build(nil)
	for _, tc := range []struct {
		what string
		err  error
		want error
	}{
		{"32768 units", b.AddString("a", strings.Repeat("x", StringUnitsMax)), nil},
		{"32769 units", b.AddString("b", strings.Repeat("x", StringUnitsMax+1)), storageerr.PropertyValueTooLarge},
		{"16384 pairs", b.AddString("c", strings.Repeat("😀", StringUnitsMax/2)), nil},
		{"16385 pairs", b.AddString("d", strings.Repeat("😀", StringUnitsMax/2+1)), storageerr.PropertyValueTooLarge},
		{"65536 bytes", b.AddBinary("e", make([]byte, BinaryBytesMax)), nil},
		{"65537 bytes", b.AddBinary("f", make([]byte, BinaryBytesMax+1)), storageerr.PropertyValueTooLarge},
		{"not UTF-8", b.AddString("g", "\xff"), storageerr.InvalidInput},
		{"before 1601", b.AddDateTime("h", TicksMin-1), storageerr.OutOfRangeInput},
		{"wrong length", b.Add(Property{Name: []byte("i"), Type: Int32, Value: []byte{1}}), ErrMalformed},
		{"wrong type", b.Add(Property{Name: []byte("j"), Type: 77}), ErrMalformed},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, tc.err, tc.want)
		}
	}
	twice := Build(nil)
	if err := errors.Join(twice.AddInt32("a", 1), twice.AddInt32("A", 1), twice.AddInt32("a", 2)); err != nil {
		t.Fatal(err)
	}
	if err := Validate("", "", twice.Bytes()); !errors.Is(err, storageerr.DuplicateProperties) {
		t.Errorf("duplicate name: %v", err)
	}
}

// A.10, A.12: what a key may hold, and how the fault is worded.
func TestKeys(t *testing.T) {
	for _, key := range []string{"", "O'Hara", `a b+c%&=,()"é😀`, strings.Repeat("x", 512), strings.Repeat("😀", 256), "\u00a0", "\ue000"} {
		if err := errors.Join(ValidateKey(RowKey, key), ValidateURLKey(key)); err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
	}
	for _, tc := range []struct {
		key         string
		insert, url error
	}{
		{"a/b", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value 'a/b' is out of range."), storageerr.QuerySyntax},
		{`a\b`, storageerr.OutOfRangeInput.Saying(`The 'RowKey' parameter of value 'a\b' is out of range.`), storageerr.QuerySyntax},
		{"a#b", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value 'a#b' is out of range."), storageerr.OutOfRangeInput},
		{"a?b", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value 'a?b' is out of range."), storageerr.OutOfRangeInput},
		{"\x01", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value '\x01' is out of range."), storageerr.OutOfRangeInput},
		{"\u0085", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value '\u0085' is out of range."), storageerr.OutOfRangeInput},
		{"\x7f", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value '\x7f' is out of range."), storageerr.OutOfRangeInput},
		{strings.Repeat("x", 513), storageerr.PropertyValueTooLarge, storageerr.PropertyValueTooLarge},
		{strings.Repeat("😀", 257), storageerr.PropertyValueTooLarge, storageerr.PropertyValueTooLarge},
		{"\xff", storageerr.InvalidInput, storageerr.InvalidInput},
	} {
		if err := ValidateKey(RowKey, tc.key); !errors.Is(err, tc.insert) {
			t.Errorf("insert %.20q: %v", tc.key, err)
		}
		if err := ValidateURLKey(tc.key); !errors.Is(err, tc.url) {
			t.Errorf("url %.20q: %v", tc.key, err)
		}
	}
}

// A.2: table names.
func TestTableNames(t *testing.T) {
	for name, want := range map[string]error{
		"Blogs": nil, "a1b": nil, strings.Repeat("a", 63): nil, "Tables1": nil,
		"ab": storageerr.NameLengthOutOfRange, strings.Repeat("a", 64): storageerr.NameLengthOutOfRange, "": storageerr.NameLengthOutOfRange,
		"1abc": storageerr.InvalidResourceName, "a-b": storageerr.InvalidResourceName, "abcé": storageerr.InvalidResourceName,
		"$Metrics": storageerr.InvalidResourceName, "tables": storageerr.InvalidInput, "TABLES": storageerr.InvalidInput,
	} {
		if err := ValidateTableName(name); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}

// Length and order are those of UTF-16, checked against unicode/utf16.
func TestTextTwin(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		// Few characters around the places where the orders of UTF-8 and UTF-16 part.
		return string(rapid.SliceOf(rapid.SampledFrom([]rune{0, 'a', 'b', 0x7f, 0x80, 0xd7ff, 0xe000, 0xefff, 0xf000, 0xffff, 0x10000, 0x1f600, 0x10ffff})).Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		common := text.Draw(t, "common")
		a, b := common+text.Draw(t, "a"), common+text.Draw(t, "b")
		ua, ub := utf16.Encode([]rune(a)), utf16.Encode([]rune(b))
		if got := UTF16Len(a); got != len(ua) {
			t.Fatalf("%q: %d units, want %d", a, got, len(ua))
		}
		if got, want := Compare(a, []byte(b)), slices.Compare(ua, ub); got != want {
			t.Fatalf("%q against %q: %d, want %d", a, b, got, want)
		}
	})
}

// Any input gives a value or an error, and what decodes encodes back to the same bytes.
func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/entity.golden")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		list, _ := hex.DecodeString(digits)
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		again, err := copyList(list)
		if err == nil && !bytes.Equal(list, again) {
			t.Fatalf("%x reads as %x", list, again)
		}
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		if Validate("p", "r", list) == nil {
			r := Read(list)
			for p, ok := r.Next(); ok; p, ok = r.Next() {
				if !utf8.Valid(p.Name) {
					t.Fatalf("name %q passes", p.Name)
				}
			}
			if merged, err := Merge(list, list); err != nil || !bytes.Equal(merged, list) {
				t.Fatalf("merge with itself: %x %v", merged, err)
			}
		}
	})
}
