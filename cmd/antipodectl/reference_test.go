package main

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/command/commandtest"
)

// The page of antipodectl is what its commands say in their help.
func TestReference(t *testing.T) {
	const page = "../../docs/cli/antipodectl.md"
	got := commandtest.Reference(newTool(func(string) string { return "" }, io.Discard, io.Discard).root())
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
