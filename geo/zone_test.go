package geo

import (
	"strings"
	"testing"
)

// A zone is a DNS name in one spelling; addresses, wildcards and URLs are none.
func TestParseZone(t *testing.T) {
	for text, want := range map[string]Zone{
		"localhost": "localhost", "Storage.Example.": "storage.example", "core.windows.net": "core.windows.net",
		"4.example": "4.example", "xn--bcher-kva.example": "xn--bcher-kva.example", "a-b.c1": "a-b.c1",
	} {
		if got, err := ParseZone(text); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "..", "a..b", ".a", "a..", "127.0.0.1", "1", "[::1]", "::1", "*.example", "a_b", "a b", "-a", "a-", "localhost:10000",
		"http://a", "a/b", "ä.example", strings.Repeat("a", 64), strings.Repeat("a.", 130) + "a", "a\n",
		"\u212a", // Kelvin sign: strings.ToLower makes a k of it.
	} {
		if got, err := ParseZone(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}
