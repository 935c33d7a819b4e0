package entity

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// Any text is a legal name or key, within its limits, or an error of the protocol; the
// two places of a key agree about which keys are legal.
func FuzzValidate(f *testing.F) {
	for _, s := range []string{"a", "a/b", "\u0085", "\xff", "", "_ꀕ1", "Timestamp", "tables", "1a", strings.Repeat("😀", 257)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		known := func(err error) bool {
			if err != nil {
				_, ok := storageerr.Of(err)
				require.True(t, ok, "%v", err)
			}
			return err == nil
		}
		if key := known(ValidateKey(PartitionKey, s)); key {
			require.True(t, utf8.ValidString(s))
			require.LessOrEqual(t, UTF16Len(s), KeyUnitsMax)
			require.False(t, strings.ContainsAny(s, "/\\#?\x00\x7f\u0085"))
			require.True(t, known(ValidateURLKey(s)))
		} else {
			require.False(t, known(ValidateURLKey(s)))
		}
		if known(ValidateName([]byte(s))) {
			require.LessOrEqual(t, UTF16Len(s), NameUnitsMax)
			require.False(t, IsSystem([]byte(s)))
			require.False(t, strings.ContainsAny(s, "@ -.\x00"))
		}
		if known(ValidateTableName(s)) {
			require.Regexp(t, "^[A-Za-z][A-Za-z0-9]{2,62}$", s)
		}
		if typ, ok := ParseType([]byte(s)); ok {
			require.NotZero(t, typ)
		}
	})
}
