package main

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// columnsLeast is the narrowest terminal for which lines are wrapped.
	columnsLeast = 40
	// labelMost is how wide the first word of a line is at most under whose text the rest of the line goes on.
	labelMost = 13
	// proseIndent is how far the rest of another line is indented.
	proseIndent = 2
)

// columnsOf is how wide the terminal is that is written to; 0 for a file or a pipe.
func columnsOf(out any) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// wrapped breaks a line at words where it is wider than a terminal, which would break it within one. Rows of tables stay, whose
// columns would be torn apart, and indented lines, which are commands to copy.
func wrapped(line string, columns int) string {
	if columns < columnsLeast || utf8.RuneCountInString(line) <= columns || strings.HasPrefix(line, " ") {
		return line
	}
	_, rest, labelled := strings.Cut(line, "  ")
	rest = strings.TrimLeft(rest, " ")
	indent := utf8.RuneCountInString(line[:len(line)-len(rest)])
	switch {
	case !labelled:
		rest, indent = line, proseIndent
	case strings.Contains(rest, "  ") || indent > labelMost:
		return line
	}
	var out strings.Builder
	out.WriteString(line[:len(line)-len(rest)])
	at := utf8.RuneCountInString(out.String())
	for i, word := range strings.Split(rest, " ") {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+width > columns:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += width
	}
	return out.String()
}
