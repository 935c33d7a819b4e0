package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns is the width of the terminal.
const columns = 80

// Values that differ from run to run, with what the page has in their place.
var (
	// cells are those of a column of a table. A cell of none is what it is: that is the same each time.
	cells = map[string]string{ //nolint:gochecknoglobals // A table.
		"BACKLOG": "600 B", "OLDEST": "1.000s", "LAG": "0.100s", "VERSION": "1.0.0", "UP": "5m",
		"DISK FREE": "60.0 GiB", "CLOCK": "+0.000s", "CERT": "1824d", "LEASE": "6s",
	}
	none = regexp.MustCompile(`^(-|0 B|none|unknown|off|full|ended)$`)
	// spans are those within a text.
	spans = []struct { //nolint:gochecknoglobals // A table.
		from *regexp.Regexp
		to   string
	}{
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-05T09:00:00${1}Z"},
		{regexp.MustCompile(`(T09:00:00)\.\d+Z`), "$1.000Z"},
		{regexp.MustCompile(`\bpid \d+, up [0-9hms.]+`), "pid 4711, up 5m0s"},
		{regexp.MustCompile(`\bsilence \d+`), "silence 4"},
	}
	gap   = regexp.MustCompile(` {2,}`)
	title = regexp.MustCompile(`^[A-Z][A-Z ]*  [A-Z ]+$`)
)

// stable replaces what differs from run to run. Tables with such a column are laid out again, as widths follow from
// the values; others stay as they are, since columns of numbers stand to the right.
func stable(text string) string {
	for _, s := range spans {
		text = s.from.ReplaceAllString(text, s.to)
	}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !title.MatchString(lines[i]) || !slices.ContainsFunc(gap.Split(lines[i], -1), differs) {
			continue
		}
		end := i
		for end < len(lines) && strings.Contains(lines[end], "  ") {
			end++
		}
		layOut(lines[i:end])
		i = end - 1
	}
	return strings.Join(lines, "\n")
}

// differs reports whether the values of a column differ from run to run.
func differs(column string) bool { return cells[column] != "" }

// layOut replaces the cells of a table, whose first line names its columns.
func layOut(lines []string) {
	var rows [][]string
	for _, line := range lines {
		rows = append(rows, gap.Split(line, -1))
	}
	widths := make([]int, len(rows[0]))
	for r, row := range rows {
		for c := range min(len(row), len(widths)) {
			if column := rows[0][c]; r > 0 && differs(column) && !none.MatchString(row[c]) {
				row[c] = cells[column]
			}
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
	}
	for r, row := range rows {
		for c := range min(len(row)-1, len(widths)) {
			row[c] += strings.Repeat(" ", widths[c]-utf8.RuneCountInString(row[c]))
		}
		lines[r] = strings.Join(row, "  ")
	}
}

// wrap breaks lines as a terminal does: where its width ends. Spaces at an end cannot be seen.
func wrap(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		left := []rune(line)
		for len(left) > columns {
			out, left = append(out, strings.TrimRight(string(left[:columns]), " ")), left[columns:]
		}
		out = append(out, string(left))
	}
	return strings.Join(out, "\n")
}
