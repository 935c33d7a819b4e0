package blobs

import (
	"errors"
	"strings"
)

// ErrTagCondition is returned for a text that is no condition on tags.
var ErrTagCondition = errors.New("blobs: no condition on tags")

const (
	// tagOperatorsMax is how many AND and OR a condition may have, and how deep its parentheses may be (protocol/blob.md S9).
	tagOperatorsMax = 10
	andWord, orWord = "AND", "OR"
)

// TagCondition is the value of x-ms-if-tags: what the tags of a blob have to be. Nil always holds.
//
//	any        = all { "OR" all }
//	all        = term { "AND" term }
//	term       = "(" any ")" | name operator value
//	operator   = "=" | "<>" | ">" | ">=" | "<" | "<="
//	name       = letters, digits and underscores, or any tag's name in double quotes
//	value      = text in single quotes
//
// Words are in any case. A value is compared with that of the tag, byte by byte.
type TagCondition struct {
	// any: one of the parts has to hold, in place of all. Without parts it is a comparison.
	any   bool
	parts []*TagCondition

	name, operator, value string
}

// ParseTagCondition reads a condition, or returns ErrTagCondition.
func ParseTagCondition(text string) (*TagCondition, error) {
	p := tagParser{rest: text}
	c := p.anyOf(0)
	if p.word() != "" || p.failed {
		return nil, ErrTagCondition
	}
	return c, nil
}

// Holds tests the condition on the tags of a blob. A comparison with a tag that is not there is false, but for <>.
func (c *TagCondition) Holds(tags []Pair) bool {
	switch {
	case c == nil:
		return true
	case len(c.parts) == 0:
		return c.compare(tags)
	}
	for _, part := range c.parts {
		if part.Holds(tags) == c.any {
			return c.any
		}
	}
	return !c.any
}

func (c *TagCondition) compare(tags []Pair) bool {
	for i := range tags {
		if tags[i].Name != c.name {
			continue
		}
		order := strings.Compare(tags[i].Value, c.value)
		switch c.operator {
		case "=":
			return order == 0
		case "<>":
			return order != 0
		case ">":
			return order > 0
		case ">=":
			return order >= 0
		case "<":
			return order < 0
		default:
			return order <= 0
		}
	}
	return c.operator == "<>"
}

// tagParser takes words from the front of rest. After a failure there are none.
type tagParser struct {
	rest      string
	operators int
	failed    bool
}

func (p *tagParser) anyOf(depth int) *TagCondition {
	return p.list(orWord, func() *TagCondition {
		return p.list(andWord, func() *TagCondition { return p.term(depth) })
	})
}

// list reads what an operator joins.
func (p *tagParser) list(operator string, next func() *TagCondition) *TagCondition {
	parts := []*TagCondition{next()}
	for !p.failed && p.takeWord(operator) {
		if p.operators++; p.operators > tagOperatorsMax {
			p.fail()
		}
		parts = append(parts, next())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &TagCondition{any: operator == orWord, parts: parts}
}

func (p *tagParser) term(depth int) *TagCondition {
	if p.takeWord("(") {
		if depth == tagOperatorsMax {
			p.fail()
			return nil
		}
		c := p.anyOf(depth + 1)
		if !p.takeWord(")") {
			p.fail()
		}
		return c
	}
	c := &TagCondition{name: p.name()}
	for _, operator := range [...]string{"<>", ">=", "<=", "=", ">", "<"} { // The longer ones first.
		if c.operator == "" && p.takeWord(operator) {
			c.operator = operator
		}
	}
	var quoted bool
	if c.value, quoted = p.quoted('\''); !quoted || c.operator == "" {
		p.fail()
	}
	return c
}

func (p *tagParser) name() string {
	if name, quoted := p.quoted('"'); quoted {
		if name == "" {
			p.fail()
		}
		return name
	}
	name := p.word()
	if name == "" || !inName(name[0]) || strings.EqualFold(name, andWord) || strings.EqualFold(name, orWord) {
		p.fail()
		return ""
	}
	p.rest = p.rest[len(name):]
	return name
}

// quoted takes a text in quotes, if there is one. Nothing in it is escaped: no tag has a quote.
func (p *tagParser) quoted(quote byte) (text string, ok bool) {
	p.word()
	if p.rest == "" || p.rest[0] != quote {
		return "", false
	}
	text, rest, closed := strings.Cut(p.rest[1:], string(quote))
	if !closed {
		p.fail()
		return "", false
	}
	p.rest = rest
	return text, true
}

// takeWord takes an operator or a parenthesis, if it is next.
func (p *tagParser) takeWord(word string) bool {
	next := p.word()
	if inName(word[0]) && !strings.EqualFold(next, word) || !inName(word[0]) && !strings.HasPrefix(next, word) {
		return false
	}
	p.rest = p.rest[len(word):]
	return true
}

// word is what comes next, behind spaces: a name, or all that is left from another character on.
func (p *tagParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	n := 0
	for n < len(p.rest) && inName(p.rest[n]) {
		n++
	}
	if n == 0 {
		return p.rest
	}
	return p.rest[:n]
}

func (p *tagParser) fail() { p.failed, p.rest = true, "" }

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
