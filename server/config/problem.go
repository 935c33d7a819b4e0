package config

import (
	"fmt"
	"strings"
)

// Severity tells what must be corrected from what should be known.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	Severity Severity `json:"severity"`
	// Field as it is written in the file, peers[1].address; empty for the whole file.
	Field string `json:"field,omitempty"`
	// Line counts from 1; zero if what is wrong is that a field is not there.
	Line int `json:"line,omitempty"`
	// Value as the file has it.
	Value string `json:"value,omitempty"`
	// Message says what is wrong and what to write instead.
	Message string `json:"message"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		if p.Value != "" {
			fmt.Fprintf(&b, " %q", p.Value)
		}
		b.WriteString(": ")
	}
	return b.String() + p.Message
}

// Problems is all that is wrong with a file. It is an error whose text has a line for
// each.
type Problems []Problem

// Error implements error.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// Errors is how many of them are no mere warnings.
func (p Problems) Errors() int {
	n := 0
	for _, one := range p {
		if one.Severity == Error {
			n++
		}
	}
	return n
}
