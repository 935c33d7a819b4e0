package docs_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// architectureBytesMax bounds the map of the code: one that nobody reads to its end leads nobody.
const architectureBytesMax = 25 << 10

// The pages that everyone reads first stay short.
func TestFirstPagesAreShort(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), architectureBytesMax)
	require.True(t, bytes.HasPrefix(text, []byte("# Architecture\n")))
}
