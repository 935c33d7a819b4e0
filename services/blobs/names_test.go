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
		got, err := ParseBlobName("cont", in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", strings.Repeat("x", 1025), strings.Repeat("𝄞", 513)} {
		_, err := ParseBlobName("cont", in)
		require.ErrorIs(t, err, storageerr.NameLengthOutOfRange)
	}
	for _, in := range []string{"a\x00", "\x1f", "\x7f", "\u0085", "\xff", "\xed\xa0\x80", strings.Repeat("x/", 254)} {
		_, err := ParseBlobName("cont", in)
		require.ErrorIs(t, err, storageerr.InvalidResourceName)
	}
}

// Names in the root container: as anywhere, but without a slash, however it is written.
func TestParseBlobNameInRoot(t *testing.T) {
	for _, in := range []string{"a", "a%2Fb", "$root", "a.b c"} {
		got, err := ParseBlobName(Root, in)
		require.NoError(t, err, in)
		require.Equal(t, in, got)
	}
	for _, in := range []string{"a/b", "/", "a/", `a\b`} {
		_, err := ParseBlobName(Root, in)
		require.ErrorIs(t, err, storageerr.InvalidURI, in)
		for _, other := range []string{Web, Logs, ChangeFeed, "root"} {
			_, err = ParseBlobName(other, in)
			require.NoError(t, err, in)
		}
	}
	_, err := ParseBlobName(Root, "a\x00/b")
	require.ErrorIs(t, err, storageerr.InvalidResourceName)
}

// Four names that begin with a dollar sign are those of containers, and no others are. The service alone makes two of
// them.
func TestValidateContainer(t *testing.T) {
	reserved := map[string]bool{"$root": false, "$web": false, "$logs": true, "$blobchangefeed": true, "cont": false}
	for name, want := range reserved {
		require.NoError(t, ValidateContainer(name), name)
		require.Equal(t, want, Reserved(name), name)
	}
	for _, name := range []string{"$other", "$ROOT", "$roots", "$root-a", "$$root", "a$b", "$web/", "$changefeed"} {
		require.ErrorIs(t, ValidateContainer(name), storageerr.InvalidResourceName, name)
		require.False(t, Reserved(name), name)
	}
	require.ErrorIs(t, ValidateContainer("$"), storageerr.NameLengthOutOfRange)
}
