package main

import (
	"regexp"
	"strings"
)

// colours has the lines that are shown in a colour, by how they begin.
var colours = []struct { //nolint:gochecknoglobals // A table.
	line *regexp.Regexp
	code string
}{
	{regexp.MustCompile(`^(CRITICAL|health +\d+ critical)`), "\x1b[31m"},
	{regexp.MustCompile(`^(WARNING|health +\d+ to look at)`), "\x1b[33m"},
}

// coloured reports whether what is written to out is shown in colours: on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func coloured(out any, getenv func(string) string) bool {
	return isTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// paint returns a text as the terminal gets it.
func (t *tool) paint(text string) []byte {
	width := 0
	if t.columns != nil {
		width = t.columns(t.out)
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		shown := wrapped(bare, width)
		for _, c := range colours {
			if t.colour && c.line.MatchString(bare) {
				shown = c.code + shown + "\x1b[0m"
			}
		}
		out.WriteString(shown + line[len(bare):])
	}
	return []byte(out.String())
}
