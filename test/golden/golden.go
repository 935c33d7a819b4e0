// Package golden keeps encoded values in golden files, for the tests of formats that outlive a process or travel to
// another version: a line for each, a name and the bytes in hex.
//
// Invariant: a line is written once and never changed, since those bytes may be on somebody's disk, or come from a node
// of the version before. With -rewrite, cases that have no line yet are added.
package golden

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is one line of a golden file.
type Case struct{ Name, Value string }

// Hex is the line of encoded bytes.
func Hex(name string, b []byte) Case { return Case{Name: name, Value: hex.EncodeToString(b)} }

// rewriting reports whether the test was called with -rewrite, which is a flag of the test or of package datadriven.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

// Require compares cases with a golden file, line by line.
func Require(t testing.TB, path string, cases []Case) {
	t.Helper()
	want := Add(t, path, cases)
	for _, c := range cases {
		require.Equal(t, want[c.Name], c.Value, "the encoding of %q changed", c.Name)
	}
}

// Add returns the lines of a golden file, which are of these cases and of no others. It compares no values: those of
// a later version may differ.
func Add(t testing.TB, path string, cases []Case) map[string]string {
	t.Helper()
	lines := Read(t, path)
	named := map[string]bool{}
	var added strings.Builder
	for _, c := range cases {
		named[c.Name] = true
		if _, ok := lines[c.Name]; ok {
			continue
		}
		if !rewriting() {
			t.Fatalf("%q is not in %s: run with -rewrite", c.Name, path)
		}
		fmt.Fprintf(&added, "%s: %s\n", c.Name, c.Value)
		lines[c.Name] = c.Value
	}
	for name := range lines {
		require.True(t, named[name], "%s: no case checks %q", path, name)
	}
	if added.Len() > 0 {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = f.WriteString(added.String())
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return lines
}

// Read returns the lines of a golden file by name.
func Read(t testing.TB, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if !rewriting() {
		require.NoError(t, err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		require.True(t, ok, "%s: %q", path, line)
		require.NotContains(t, lines, name)
		lines[name] = strings.TrimSpace(value)
	}
	return lines
}

// Bytes is the value of a line.
func Bytes(t testing.TB, line string) []byte {
	t.Helper()
	b, err := hex.DecodeString(line)
	require.NoError(t, err)
	return b
}
