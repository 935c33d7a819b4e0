package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/command/commandtest"
)

// The page of antipode is what its commands say in their help.
func TestReference(t *testing.T) {
	t.Setenv(accountsEnv, "") // It is a default of flags.
	const page = "../../docs/cli/antipode.md"
	got := commandtest.Reference(root())
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
