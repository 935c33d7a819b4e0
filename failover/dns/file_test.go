package dns

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/durable"
)

func goldenFile() map[geo.Account]held {
	return map[geo.Account]held{
		"pictures": {in("pictures", 3, north, catalog.RAGRS), true}, "mail": {in("mail", 1, south, catalog.GRS), false},
		"alone": {in("alone", 2, south, catalog.LRS), true},
	}
}

const goldenPath = "testdata/names.golden"

// The file never changes its form (docs/format/names.md).
func TestFileGolden(t *testing.T) {
	got := encodeFile(goldenFile())
	if *rewrite {
		require.NoError(t, os.WriteFile(goldenPath, got, 0o644))
	}
	want, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	entries, err := parseFile(want)
	require.NoError(t, err)
	require.Equal(t, goldenFile(), entries)
	page, err := os.ReadFile("../../docs/format/names.md")
	require.NoError(t, err)
	require.Contains(t, string(page), string(want), "the page has another example")
}

// Any bytes are refused, or are what is written of what they read as.
func FuzzParseFile(f *testing.F) {
	f.Add(encodeFile(goldenFile()))
	f.Add(encodeFile(nil))
	f.Add([]byte("antipode-names 1\nend 0 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseFile(b)
		if err != nil {
			require.ErrorIs(t, err, errFile)
			return
		}
		require.Equal(t, string(b), string(encodeFile(entries)))
	})
}

// Each damaged byte, and each cut, is found.
func TestFileDamaged(t *testing.T) {
	good := encodeFile(goldenFile())
	for i := range good {
		bad := []byte(string(good))
		bad[i] ^= 0x20
		_, err := parseFile(bad)
		require.ErrorIs(t, err, errFile, "byte %d", i)
		_, err = parseFile(good[:i])
		require.ErrorIs(t, err, errFile, "cut at %d", i)
	}
	_, err := parseFile([]byte(strings.Replace(string(good), "names 1", "names 2", 1)))
	require.ErrorIs(t, err, errFile)
}

// A damaged file is set aside, and the view denies no name until a stamp has answered.
func TestDamagedFileIsSetAside(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, durable.MkdirAll(fs, "names"))
	require.NoError(t, durable.Write(fs, "names", fileName, []byte("antipode-names 1\nx")))
	v := openView(t, fs)
	require.False(t, v.Known())
	aside, err := durable.Read(fs, "names/names.damaged")
	require.NoError(t, err)
	require.Equal(t, "antipode-names 1\nx", string(aside))
	require.NoError(t, v.Merge(north, nil))
	require.True(t, v.Known())
	require.NoError(t, v.Merge(north, []Entry{in("mail", 1, south, catalog.GRS)}))
	require.Equal(t, 1, openView(t, fs).Len())
}
