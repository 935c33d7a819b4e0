package blobs

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// A name that is accepted is UTF-8 within its limits and accepted again as it is; any
// other is an error of the protocol.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", `a\b`, "-a", "a--b", "abc", "$root", "\u0085", "\xff", "", strings.Repeat("a/", 254), strings.Repeat("😀", 513)} {
		f.Add(s)
	}
	known := func(t *testing.T, err error) {
		_, ok := storageerr.Of(err)
		require.True(t, ok, "%v", err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, container := range []string{"cont", Root} {
			name, err := ParseBlobName(container, s)
			if err != nil {
				known(t, err)
				continue
			}
			again, err := ParseBlobName(container, name)
			require.NoError(t, err)
			require.Equal(t, name, again)
			require.True(t, utf8.ValidString(name))
			require.LessOrEqual(t, len(utf16.Encode([]rune(name))), blobNameUnitsMax)
			require.NotContains(t, name, `\`)
			require.False(t, container == Root && strings.Contains(name, "/"))
		}
		if err := ValidateContainer(s); err != nil {
			known(t, err)
		} else {
			require.Equal(t, strings.ToLower(s), s)
			require.NotContains(t, s, "--")
			require.Equal(t, strings.HasPrefix(s, "$"), catalog.ValidateName(s) != nil) // One of a queue has none.
		}
	})
}

// Any row of a blob's partition is of a known kind or malformed.
func FuzzParseRowID(f *testing.F) {
	f.Add([]byte{})
	f.Add(listRow(12, 3))
	f.Fuzz(func(t *testing.T, row []byte) {
		kind, _, err := parseRowID(row)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Contains(t, []byte{rowBlock, rowList}, kind)
	})
}
