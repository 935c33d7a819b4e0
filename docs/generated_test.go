package docs_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write what is generated; then read the diff")

// requireGenerated compares a file with what generates it, or writes it.
func requireGenerated(t *testing.T, file, want string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	if string(got) == want {
		return
	}
	// Only the first line that differs: the files are long.
	wanted, stands := strings.Split(want, "\n"), strings.Split(string(got), "\n")
	for i, line := range wanted {
		if i >= len(stands) || stands[i] != line {
			t.Fatalf("%s is generated: go test ./docs -args -rewrite; line %d should be: %s", file, i+1, line)
		}
	}
	t.Fatalf("%s is generated: go test ./docs -args -rewrite; line %d is one too many", file, len(wanted)+1)
}

// requireGeneratedBetween is the same for what stands between two lines of a file.
func requireGeneratedBetween(t *testing.T, file, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin+"\n")
	require.True(t, ok, "%s has no line %q", file, begin)
	_, after, ok := strings.Cut(rest, end+"\n")
	require.True(t, ok, "%s has no line %q", file, end)
	requireGenerated(t, file, before+begin+"\n"+want+end+"\n"+after)
}
