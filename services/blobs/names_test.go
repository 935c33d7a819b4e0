package blobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// Container names: the rules of protocol/blob.md 1.3, by table.
func TestValidateContainer(t *testing.T) {
	for _, name := range []string{"abc", "a-b", "0a9", strings.Repeat("x", 63)} {
		require.NoError(t, ValidateContainer(name), name)
	}
	for _, name := range []string{"", "ab", strings.Repeat("x", 64)} {
		require.ErrorIs(t, ValidateContainer(name), storageerr.NameLengthOutOfRange, name)
	}
	for _, name := range []string{"Abc", "a_b", "-ab", "ab-", "a--b", "a.b", "aäb", "$web", "a b"} {
		require.ErrorIs(t, ValidateContainer(name), storageerr.InvalidResourceName, name)
	}
	require.True(t, SystemContainer("$root"))
	require.False(t, SystemContainer("$other"))
}

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
