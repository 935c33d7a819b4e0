package blobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// Blob names: nearly anything goes, as it came but for the backslash.
func TestParseBlobName(t *testing.T) {
	for in, want := range map[string]string{
		"a":                         "a",
		"/a//b/":                    "/a//b/",
		`a\b`:                       "a/b",
		"a%2F.. +?#'":               "a%2F.. +?#'",
		"é€𝄞":                       "é€𝄞",
		strings.Repeat("𝄞", 512):    strings.Repeat("𝄞", 512),
		strings.Repeat("x/", 253):   strings.Repeat("x/", 253),
		strings.Repeat("\u00a0", 3): "\u00a0\u00a0\u00a0",
	} {
		got, err := ParseBlobName(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", strings.Repeat("x", 1025), strings.Repeat("𝄞", 513)} {
		_, err := ParseBlobName(in)
		require.ErrorIs(t, err, storageerr.NameLengthOutOfRange)
	}
	for _, in := range []string{"a\x00", "\x1f", "\x7f", "\u0085", "\xff", "\xed\xa0\x80", strings.Repeat("x/", 254)} {
		_, err := ParseBlobName(in)
		require.ErrorIs(t, err, storageerr.InvalidResourceName)
	}
}
