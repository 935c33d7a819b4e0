package wire

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"antipode/geo"
)

// The three HTTP forms are read, in GMT alone.
func TestParseHTTPTime(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for _, s := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
	} {
		if got, ok := ParseHTTPTime(s); !ok || !got.Equal(want) {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{
		"", "Sun", "Sun,", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 EST", "Sunday, 06-Nov-94 08:49:37 EST",
		"Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
	} {
		if _, ok := ParseHTTPTime(s); ok {
			t.Errorf("%q was accepted", s)
		}
	}
	if got := FormatHTTPTime(want.In(time.FixedZone("x", 3600))); got != "Sun, 06 Nov 1994 08:49:37 GMT" {
		t.Errorf("formatted as %q", got)
	}
	if got := FormatHTTPTime(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)); got != "Fri, 31 Dec 9999 23:59:59 GMT" {
		t.Errorf("formatted as %q", got)
	}
}

// HTTP dates are those of the time package, for every second of the four-digit years and in any zone.
func TestHTTPTimeIsThatOfTheTimePackage(t *testing.T) {
	check := func(at time.Time) {
		t.Helper()
		if got, want := FormatHTTPTime(at), at.UTC().Format(http.TimeFormat); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	for at := time.Date(2023, 12, 31, 23, 59, 59, 999999999, time.UTC); at.Year() < 2025; at = at.Add(25*time.Hour + 61*time.Second) {
		check(at)
	}
	first, after := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	check(time.Unix(first, 0))
	check(time.Unix(after-1, 0))
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		at := time.Unix(first+rng.Int64N(after-first), rng.Int64N(1e9))
		check(at.In(time.FixedZone("any", rng.IntN(86400)-43200)))
	}
}

// A date of a row of a page allocates nothing, and a date in a string the string alone.
func TestHTTPTimeAllocations(t *testing.T) {
	at, b := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { b = AppendTimeElement(b[:0], "Last-Modified", at) }); n != 0 {
		t.Errorf("%v allocations for an element", n)
	}
	if got := string(b); got != "<Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified>" {
		t.Errorf("appended %q", got)
	}
	if n := testing.AllocsPerRun(100, func() { _ = FormatHTTPTime(at) }); n > 1 {
		t.Errorf("%v allocations for a string", n)
	}
}

func BenchmarkHTTPTime(b *testing.B) {
	at := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	text := make([]byte, 0, len(http.TimeFormat))
	b.Run("appended", func(b *testing.B) {
		for b.Loop() {
			text = AppendHTTPTime(text[:0], at)
		}
	})
	b.Run("layout", func(b *testing.B) {
		for b.Loop() {
			text = at.AppendFormat(text[:0], http.TimeFormat)
		}
	})
}

// ISO times print as the service does and as the time package would, and what is
// printed is read back.
func TestISO(t *testing.T) {
	for text, at := range map[string]time.Time{
		"2008-10-01T15:27:34.4838174Z": time.Date(2008, 10, 1, 15, 27, 34, 483817400, time.UTC),
		"2008-10-01T15:27:37.512524Z":  time.Date(2008, 10, 1, 15, 27, 37, 512524000, time.UTC),
		"2020-02-29T00:00:00Z":         time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC),
		"1970-01-01T00:00:00.0000001Z": time.Unix(0, 100),
	} {
		if got := FormatISO(geo.TimestampOf(at)); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		ts := geo.Timestamp(rng.Uint64N(80e16))
		text := FormatISO(ts)
		if want := ts.Time().Format("2006-01-02T15:04:05.9999999Z"); text != want {
			t.Fatalf("%s, want %s", text, want)
		}
		if got, ok := ParseISO(text); !ok || got != ts {
			t.Fatalf("%s read as %d, want %d", text, got, ts)
		}
	}
	for _, s := range []string{
		"", "Z", "2008-10-01T15:27:34", "2008-10-01T15:27:34.Z", "2008-10-01T15:27:34.12345678Z", "2008-10-01T15:27:34,1Z",
		"2008-02-30T15:27:34Z", "2008-10-01T24:00:00Z", "2008-10-01T15:60:34Z", "2008-10-01T15:27:60Z", "1969-12-31T23:59:59Z",
		"2008-10-01 15:27:34Z", "2008-10-01T15:27:3aZ", "2008-10-01T15:27:34z", "2008-10-01T+5:27:34Z",
	} {
		if _, ok := ParseISO(s); ok {
			t.Errorf("%q was accepted", s)
		}
	}
}

// ETags have the published forms, and the table's are read back in any encoding.
func TestETags(t *testing.T) {
	ts := geo.TimestampOf(time.Date(2008, 10, 1, 15, 27, 34, 483817400, time.UTC))
	if got, want := TableETag(ts), `W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := BlobETag(ts), `"0x8CAF1F15CC58A1E"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, tag := range []string{
		TableETag(ts), `W/"datetime'2008-10-01T15:27:34.4838174Z'"`, `W/"datetime'2008-10-01T15%3a27:34.4838174Z'"`, `W/"datetime%272008-10-01T15%3A27%3A34.4838174Z%27"`,
	} {
		if got, ok := ParseTableETag(tag); !ok || got != ts {
			t.Errorf("%s: %v, %v", tag, got, ok)
		}
	}
	for _, tag := range []string{"", `W/"`, `W/"datetime'"`, `"datetime'2008-10-01T15:27:34Z'"`, `W/"0x5B168C7B6E589D2"`, `W/"datetime'2008-10-01T15%3'"`} {
		if _, ok := ParseTableETag(tag); ok {
			t.Errorf("%s was accepted", tag)
		}
	}
}

func BenchmarkTableETag(b *testing.B) {
	ts, buf := geo.TimestampOf(time.Date(2026, 10, 1, 15, 27, 34, 483817400, time.UTC)), make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTableETag(buf[:0], ts)
	}
}
