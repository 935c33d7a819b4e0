package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The page has one block for each screen that the program takes, in the program's sequence, and no other one. Each is
// filled, and fits the terminal.
func TestPageHasEveryScreen(t *testing.T) {
	text, err := os.ReadFile("../screens.md")
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	found, err := blocks(lines)
	require.NoError(t, err)
	var want, have []screen
	for _, s := range scenes() {
		for _, l := range s.look {
			want = append(want, screen{s.title, l.command})
		}
	}
	for _, b := range found {
		have = append(have, b.screen)
		shown := lines[b.first+1 : b.end]
		require.NotEmpty(t, shown, "%s under %q: make screens", b.command, b.title)
		for _, line := range shown {
			require.LessOrEqual(t, utf8.RuneCountInString(line), columns, line)
		}
	}
	require.Equal(t, want, have)
}

const examplePage = `# Page

## One

Text.

` + fence + `
$ antipodectl check
old
` + fence + `

## Two

` + fence + `
$ antipodectl check
` + fence + `
End.
`

// Only what is in blocks is replaced, and every block and every screen finds its counterpart.
func TestFill(t *testing.T) {
	one, two := screen{"One", "check"}, screen{"Two", "check"}
	out, err := fill(examplePage, map[screen]string{one: "a\nb\n", two: "c\n"})
	require.NoError(t, err)
	want := strings.Replace(examplePage, "check\nold\n", "check\na\nb\n", 1)
	want = strings.Replace(want, "check\n"+fence+"\nEnd", "check\nc\n"+fence+"\nEnd", 1)
	require.Equal(t, want, out)

	for wrong, page := range map[string]string{
		"no screen is left for check under \"Three\"": strings.Replace(examplePage, "## Two", "## Three", 1),
		"no screen is left for check under \"One\"":   strings.Replace(examplePage, "## Two", "", 1),
		"there is no block for check under \"Two\"":   strings.Split(examplePage, "## Two")[0],
		"a block begins with":                         strings.Replace(examplePage, "$ antipodectl check\nold", "old", 1),
		"the block does not end":                      strings.TrimSuffix(examplePage, fence+"\nEnd.\n"),
	} {
		_, err := fill(page, map[screen]string{one: "a\n", two: "c\n"})
		require.ErrorContains(t, err, wrong)
	}
}
