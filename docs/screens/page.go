package main

import (
	"fmt"
	"strings"
)

const (
	fence   = "```"
	heading = "## "
	prompt  = "$ antipodectl "
)

// block is a fenced block of the page: the lines from first on, up to but not including the line end.
type block struct {
	screen
	first, end int
}

// blocks finds the fenced blocks of the page. The first line of each is its command.
func blocks(lines []string) (out []block, err error) {
	title, inside := "", false
	var b block
	for i, line := range lines {
		switch {
		case inside && line == fence:
			b.end, inside = i, false
			out = append(out, b)
		case inside && i == b.first:
			command, ok := strings.CutPrefix(line, prompt)
			if !ok {
				return nil, fmt.Errorf("line %d: a block begins with %q", i+1, prompt)
			}
			b.command = command
		case inside:
		case strings.HasPrefix(line, heading):
			title = strings.TrimPrefix(line, heading)
		case strings.HasPrefix(line, fence):
			b, inside = block{screen: screen{title: title}, first: i + 1}, true
		}
	}
	if inside {
		return nil, fmt.Errorf("line %d: the block does not end", b.first)
	}
	return out, nil
}

// fill returns the page with these screens in its blocks: one for each, and no block without one.
func fill(page string, printed map[screen]string) (string, error) {
	lines := strings.Split(page, "\n")
	found, err := blocks(lines)
	if err != nil {
		return "", err
	}
	var out []string
	at, filled := 0, map[screen]bool{}
	for _, b := range found {
		text, ok := printed[b.screen]
		if !ok || filled[b.screen] {
			return "", fmt.Errorf("line %d: no screen is left for %s under %q", b.first, b.command, b.title)
		}
		filled[b.screen] = true
		out = append(out, lines[at:b.first+1]...)
		out = append(out, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
		at = b.end
	}
	for s := range printed {
		if !filled[s] {
			return "", fmt.Errorf("there is no block for %s under %q", s.command, s.title)
		}
	}
	return strings.Join(append(out, lines[at:]...), "\n"), nil
}
