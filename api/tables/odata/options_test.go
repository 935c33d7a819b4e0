package odata

import (
	"errors"
	"strings"
	"testing"

	"antipode/services/storageerr"
)

// A.53.
func TestParseTop(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "1": 1, "1000": 1000, "007": 7, "-1": -1, "1001": -1, "x": -1, "": -1, "+5": -1, "99999999999999999999": -1} {
		n, err := ParseTop(text)
		if errors.Is(err, storageerr.InvalidInput) != (want < 0) || err == nil && n != want {
			t.Errorf("%q: %d %v", text, n, err)
		}
	}
}

// A $select of as many names as an entity may have properties is read, one more is not.
func TestSelectIsBounded(t *testing.T) {
	for text, ok := range map[string]bool{strings.Repeat("a,", 251) + "a": true, strings.Repeat("a,", 252) + "a": false, "\xff": false} {
		if _, err := ParseSelect(text); ok != (err == nil) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
