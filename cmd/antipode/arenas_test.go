//go:build cgo && linux

package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invariant 8: with glibc, what the C library keeps of freed memory is bounded.
func TestArenasAreBounded(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "getconf", "GNU_LIBC_VERSION").Run(); err != nil {
		t.Skip("another C library than glibc")
	}
	require.True(t, boundArenas())
}
