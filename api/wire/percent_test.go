package wire

import "testing"

// In a path a plus is a plus.
func TestUnescapePath(t *testing.T) {
	for raw, want := range map[string]string{"": "", "a+b": "a+b", "a%2Fb%2b": "a/b+", "%C3%A4": "ä"} {
		if got, ok := UnescapePath(raw); !ok || got != want {
			t.Errorf("%q: %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"%", "a%2", "%zz"} {
		if _, ok := UnescapePath(raw); ok {
			t.Errorf("%q was accepted", raw)
		}
	}
}
