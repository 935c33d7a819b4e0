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
	require.Equal(t, want, string(got), "%s is generated: go test ./docs -args -rewrite", file)
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
