package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// There is a page for each command that help lists, with its help, and none for the others.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795910400")
	root := &cobra.Command{Use: "prog", Short: "Do", Version: "1.2"}
	root.AddCommand(&cobra.Command{Use: "show NAME", Short: "Show it", Long: "All of it.", Example: "  prog show x", Run: func(*cobra.Command, []string) {}}, Man())
	dir := t.TempDir()
	root.SetArgs([]string{"man", dir})
	require.NoError(t, root.Execute())
	require.FileExists(t, filepath.Join(dir, "prog.1"))
	require.NoFileExists(t, filepath.Join(dir, "prog-man.1"))
	text, err := os.ReadFile(filepath.Join(dir, "prog-show.1"))
	require.NoError(t, err)
	for _, want := range []string{"Show it", "All of it.", "prog show x", "prog 1.2", "Nov 2026"} {
		require.Contains(t, string(text), want)
	}
}
