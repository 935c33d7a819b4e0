package config

import (
	"fmt"
	"strings"
)

// Severity distinguishes errors, which must be corrected, from warnings.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is one error or warning about a file.
type Problem struct {
	Severity Severity `json:"severity"`
	// Field is the path of the field, such as peers[1].address; empty for the whole file.
	Field string `json:"field,omitempty"`
	// Line counts from 1; zero for a missing field.
	Line int `json:"line,omitempty"`
	// Value as written in the file.
	Value string `json:"value,omitempty"`
	// Message is what is wrong and what to write instead.
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

// Problems are all problems of a file. As an error its text has one line for each.
type Problems []Problem

// Error implements error.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// Errors counts the problems that are errors.
func (p Problems) Errors() int {
	n := 0
	for _, one := range p {
		if one.Severity == Error {
			n++
		}
	}
	return n
}
