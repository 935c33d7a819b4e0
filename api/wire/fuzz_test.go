package wire

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// The path decoder is net/url's.
func FuzzUnescapePath(f *testing.F) {
	for _, s := range []string{"a+b", "%2F", "%", "%zz", "%C3%A4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := url.PathUnescape(s)
		if got, ok := UnescapePath(s); ok != (err == nil) || got != want {
			t.Fatalf("%q: %q, %v; twin says %q, %v", s, got, ok, want, err)
		}
	})
}

// Dates that are read are printed to a date that reads as the same second.
func FuzzParseHTTPTime(f *testing.F) {
	for _, s := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "", "Sun,", "x, 06 Nov 1994 08:49:37 GMT",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := ParseHTTPTime(s)
		if !ok {
			return
		}
		again, ok := ParseHTTPTime(FormatHTTPTime(at))
		if !ok || again.Unix() != at.Unix() {
			t.Fatalf("%q: %v printed and read again: %v, %v", s, at, again, ok)
		}
	})
}

// Table tags and their times: what is read prints to a tag that reads the same.
func FuzzParseTableETag(f *testing.F) {
	for _, s := range []string{
		`W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`, `W/"datetime'2008-10-01T15:27:34Z'"`, `W/"datetime''"`, `W/"%zz"`, "*", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ts, ok := ParseTableETag(s)
		if !ok {
			return
		}
		if again, ok := ParseTableETag(TableETag(ts)); !ok || again != ts {
			t.Fatalf("%q: %d printed and read again: %d, %v", s, ts, again, ok)
		}
		if again, ok := ParseISO(FormatISO(ts)); !ok || again != ts {
			t.Fatalf("%q: %d printed and read again: %d, %v", s, ts, again, ok)
		}
	})
}

// What decodes is the one Base64 text of its bytes.
func FuzzDecodeBase64(f *testing.F) {
	for _, s := range []string{"", "AA==", "AB==", "AA", "A\nA==", "+/+/", "-_-_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if b, ok := DecodeBase64(s); ok && base64.StdEncoding.EncodeToString(b) != s {
			t.Fatalf("%q reads as %x", s, b)
		}
	})
}

// Any headers give metadata of at most 8 KiB in the order of its names, or a row of the
// protocol; what is answered is read as the same again.
func FuzzParseMetadata(f *testing.F) {
	f.Add("a", "1", "_b", " 2", true)
	f.Add("a-b", "v", "", "", false)
	f.Add("A", "v", "a", "\xff", true)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, identifiers bool) {
		h := http.Header{}
		h.Add("x-ms-meta-"+name1, value1)
		h.Add("x-ms-meta-"+name2, value2)
		list, err := ParseMetadata(h, identifiers)
		if err != nil {
			_, known := storageerr.Of(err)
			require.True(t, known, "%v", err)
			return
		}
		size := 0
		sent, again := http.Header{}, http.Header{}
		for i, m := range list {
			size += len(m.Name) + len(m.Value)
			require.True(t, i == 0 || list[i-1].Name < m.Name)
		}
		require.LessOrEqual(t, size, metaBytesMax)
		SetMetadata(sent, list)
		for name, values := range sent {
			again[http.CanonicalHeaderKey(name)] = values
		}
		twice, err := ParseMetadata(again, identifiers)
		require.NoError(t, err)
		require.Equal(t, list, twice)
		require.NotContains(t, string(AppendMetadata(nil, list)), "\xff")
	})
}

// What a marker says is what it was made of; other text is refused or reads as UTF-8.
func FuzzMarker(f *testing.F) {
	f.Add("AWE")
	f.Add("A\rX0")
	f.Add(NewMarker("a/\uffff"))
	f.Fuzz(func(t *testing.T, text string) {
		if name, ok := ParseMarker(text); ok {
			require.Equal(t, text, NewMarker(name))
		}
	})
}
