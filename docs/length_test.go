package docs_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bounds of the pages that everyone reads first: one that nobody reads to its end leads nobody.
const (
	architectureBytesMax = 25 << 10
	readmeLinesMax       = 110
	indexLinesMax        = 40
)

// The pages that everyone reads first stay short.
func TestFirstPagesAreShort(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), architectureBytesMax)
	for file, linesMax := range map[string]int{"../README.md": readmeLinesMax, "README.md": indexLinesMax} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.LessOrEqual(t, bytes.Count(text, []byte("\n")), linesMax, file)
	}
}
