package main

import (
	"os"
	"regexp"
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

// wrapped breaks a line at words where it is wider than a terminal, which would break it within one, and the row of a table
// between its columns. Indented lines stay, which are commands to copy, but for what to do next.
func wrapped(line string, columns int) string {
	if columns < columnsLeast || utf8.RuneCountInString(line) <= columns {
		return line
	}
	if strings.HasPrefix(line, " ") {
		head, rest, is := strings.Cut(line, nextLabel)
		if !is || strings.TrimLeft(head, " ") != "" {
			return line
		}
		return atWords(head+nextLabel, rest, columns, len(head)+len(nextLabel))
	}
	_, rest, labelled := strings.Cut(line, "  ")
	rest = strings.TrimLeft(rest, " ")
	indent := utf8.RuneCountInString(line[:len(line)-len(rest)])
	switch {
	case !labelled:
		return atWords("", line, columns, proseIndent)
	case strings.Contains(rest, "  ") || indent > labelMost:
		return atCells(line, columns)
	}
	return atWords(line[:len(line)-len(rest)], rest, columns, indent)
}

// nextLabel begins an indented line that is what to do next.
const nextLabel = "next: "

// atWords writes the words of a text behind a head, on as many lines as it takes; the later ones are indented.
func atWords(head, text string, columns, indent int) string {
	var out strings.Builder
	out.WriteString(head)
	at := utf8.RuneCountInString(head)
	for i, word := range strings.Split(text, " ") {
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

// cell is what stands in one column of a row, with the blanks before it.
var cell = regexp.MustCompile(` *(\S+(?: \S+)*)`)

// atCells writes the row of a table on as many lines as it takes. It breaks between columns, and within one that is wider than a
// line at words.
func atCells(row string, columns int) string {
	var lines []string
	line := ""
	for _, c := range cell.FindAllStringSubmatch(row, -1) {
		if line != "" && utf8.RuneCountInString(line+c[0]) > columns {
			lines = append(lines, line)
			line = strings.Repeat(" ", proseIndent) + c[1]
		} else {
			line += c[0]
		}
		if utf8.RuneCountInString(line) > columns {
			line = atWords("", line, columns, proseIndent)
			if i := strings.LastIndex(line, "\n"); i >= 0 {
				lines, line = append(lines, line[:i]), line[i+1:]
			}
		}
	}
	return strings.Join(append(lines, line), "\n")
}
