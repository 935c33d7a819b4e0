package main

import "regexp"

// colours has the lines that are shown in a colour, by how they begin.
var colours = []struct { //nolint:gochecknoglobals // A table.
	line *regexp.Regexp
	code string
}{
	{regexp.MustCompile(`(?m)^(CRITICAL|ALARM|health +\d+ critical).*$`), "\x1b[31m"},
	{regexp.MustCompile(`(?m)^(WARNING|health +\d+ to look at).*$`), "\x1b[33m"},
}

// coloured reports whether what is written to out is shown in colours: on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func coloured(out any, getenv func(string) string) bool {
	return isTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// paint returns a text as the terminal gets it.
func (t *tool) paint(text string) []byte {
	if t.colour {
		for _, c := range colours {
			text = c.line.ReplaceAllString(text, c.code+"$0\x1b[0m")
		}
	}
	return []byte(text)
}
