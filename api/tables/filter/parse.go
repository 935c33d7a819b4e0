package filter

import (
	"math"
	"strings"
	"unicode/utf8"

	"antipode/api/protocol"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

const (
	// filterBytesMax bounds the text of a filter. Published clients send up to 15
	// comparisons; this holds about a thousand.
	filterBytesMax = 64 << 10
	// filterDepthMax bounds parentheses and nots within each other. LINQ providers
	// need 100.
	filterDepthMax = 256
)

// Parse reads the decoded value of the $filter of a request of version v. An empty one is
// nil, which lets everything through. The errors are those of protocol/table.md 11.2.
func Parse(v protocol.Version, text string) (*Filter, error) {
	if len(text) > filterBytesMax || !utf8.ValidString(text) {
		return nil, storageerr.InvalidInput
	}
	p := filterParser{version: v, text: text}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == tokenEnd {
		return nil, nil
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokenEnd {
		return nil, p.unexpected()
	}
	if err := truth(n); err != nil {
		return nil, err
	}
	if p.unserved {
		return nil, storageerr.NotImplemented
	}
	return &Filter{root: n, names: p.names, places: p.places}, nil
}

// filterParser is a recursive-descent parser with one token of look-ahead. Each method
// is named for the rule of 11.1 it reads.
type filterParser struct {
	version protocol.Version
	text    string
	tok     token
	depth   int
	// names and places become Filter's.
	names  []string
	places map[string]int
	// unserved: the filter has constructs that are known and not served: functions,
	// arithmetic, comparisons of two properties. They are parsed all the same, since a
	// syntax error has another code.
	unserved bool
}

// slotOf gives a property its slot.
func (p *filterParser) slotOf(name string) int {
	switch name {
	case entity.PartitionKey:
		return slotPartitionKey
	case entity.RowKey:
		return slotRowKey
	case entity.Timestamp:
		return slotTimestamp
	}
	slot, known := p.places[name]
	if !known {
		if p.places == nil {
			p.places = map[string]int{}
		}
		slot = len(p.names)
		p.names, p.places[name] = append(p.names, name), slot
	}
	return slot
}

func (p *filterParser) advance() (err error) {
	p.tok, err = lexToken(p.text, p.tok.end)
	return err
}

// unexpected is the error for the token at hand.
func (p *filterParser) unexpected() error { return syntaxError(p.text, p.tok.end) }

func (p *filterParser) at(word string) bool { return p.tok.kind == tokenWord && p.tok.text == word }

func (p *filterParser) or() (*node, error) { return p.chain("or", nodeOr, (*filterParser).and) }

func (p *filterParser) and() (*node, error) { return p.chain("and", nodeAnd, (*filterParser).not) }

// chain reads operands with word between them into one flat node.
func (p *filterParser) chain(word string, kind nodeKind, operand func(*filterParser) (*node, error)) (*node, error) {
	first, err := operand(p)
	if err != nil || !p.at(word) {
		return first, err
	}
	n := &node{kind: kind, kids: []*node{first}}
	for p.at(word) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		next, err := operand(p)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, next)
	}
	for _, k := range n.kids {
		if err := truth(k); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// truth refuses a literal other than a Boolean where a condition must stand.
func truth(n *node) error {
	if n.kind == nodeLiteral && n.lit.typ != entity.Boolean {
		return storageerr.InvalidInput
	}
	return nil
}

func (p *filterParser) not() (*node, error) {
	if !p.at("not") {
		return p.compare()
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer p.shallower()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.not()
	if err != nil {
		return nil, err
	}
	if err := truth(n); err != nil {
		return nil, err
	}
	return &node{kind: nodeNot, kids: []*node{n}}, nil
}

func (p *filterParser) deeper() error {
	if p.depth++; p.depth > filterDepthMax {
		return storageerr.InvalidInput
	}
	return nil
}

func (p *filterParser) shallower() { p.depth-- }

func (p *filterParser) compare() (*node, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	if p.at("in") || p.at("has") {
		return p.inList()
	}
	op, ok := p.operator()
	if !ok {
		return left, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	if left.kind == nodeLiteral {
		left, right, op = right, left, op.mirrored()
	}
	if left.kind != nodeProperty || right.kind != nodeLiteral {
		return p.skipped(), nil
	}
	if right.lit.typ == 0 {
		return nil, nullComparison(op)
	}
	n := &node{kind: nodeCompare, op: op, name: left.name, slot: left.slot, lit: right.lit, unlike: op.holdsUnlike(p.version)}
	if n.name == tableName {
		n.folded = strings.ToLower(n.lit.text)
	}
	return n, nil
}

// skipped stands for what is not served.
func (p *filterParser) skipped() *node {
	p.unserved = true
	return &node{kind: nodeLiteral, lit: boolLiteral(true)}
}

// operand reads a primary, and the arithmetic behind it.
func (p *filterParser) operand() (*node, error) {
	n, err := p.primary()
	for err == nil && p.tok.kind == tokenWord && arithmetic(p.tok.text) {
		if err = p.advance(); err == nil {
			_, err = p.primary()
			n = p.skipped()
		}
	}
	return n, err
}

func arithmetic(word string) bool {
	switch word {
	case "add", "sub", "mul", "div", "mod":
		return true
	}
	return false
}

// inList reads the right side of in or has.
func (p *filterParser) inList() (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == tokenOpen {
		return p.skipped(), p.skipParentheses()
	}
	_, err := p.primary()
	return p.skipped(), err
}

// skipParentheses reads what stands between the parenthesis at hand and its partner.
func (p *filterParser) skipParentheses() error {
	for open := 0; ; {
		switch p.tok.kind {
		case tokenOpen:
			open++
		case tokenClose:
			open--
		case tokenEnd:
			return p.unexpected()
		}
		if err := p.advance(); err != nil || open == 0 {
			return err
		}
	}
}

func (p *filterParser) operator() (comparison, bool) {
	if p.tok.kind != tokenWord {
		return 0, false
	}
	return comparisonOf(p.tok.text)
}

func comparisonOf(word string) (comparison, bool) {
	switch word {
	case "eq":
		return opEq, true
	case "ne":
		return opNe, true
	case "gt":
		return opGt, true
	case "ge":
		return opGe, true
	case "lt":
		return opLt, true
	case "le":
		return opLe, true
	}
	return 0, false
}

func nullComparison(op comparison) error {
	var word string
	switch op {
	case opEq, opNe:
		return storageerr.InvalidInput
	case opGt:
		word = "GreaterThan"
	case opGe:
		word = "GreaterThanOrEqual"
	case opLt:
		word = "LessThan"
	case opLe:
		word = "LessThanOrEqual"
	}
	return storageerr.InvalidInput.Saying("The operator '" + word + "' is not supported for the 'null' literal; only equality checks are supported.")
}

func (p *filterParser) primary() (*node, error) {
	t := p.tok
	switch t.kind {
	case tokenOpen:
		return p.parenthesis()
	case tokenLiteral:
		return &node{kind: nodeLiteral, lit: t.lit}, p.advance()
	case tokenWord:
	default:
		return nil, p.unexpected()
	}
	n := &node{kind: nodeLiteral}
	switch {
	case strings.EqualFold(t.text, "true"):
		n.lit = boolLiteral(true)
	case strings.EqualFold(t.text, "false"):
		n.lit = boolLiteral(false)
	case t.text == "NaN":
		n.lit = doubleLiteral(math.NaN())
	case t.text == "INF":
		n.lit = doubleLiteral(math.Inf(1))
	case t.text == "null":
	default:
		n = &node{kind: nodeProperty, name: t.text, slot: p.slotOf(t.text)}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.beyond(n)
}

// beyond reads the arguments, or the path, that make something else of a word.
func (p *filterParser) beyond(n *node) (*node, error) {
	for {
		var err error
		switch {
		case p.tok.kind == tokenOpen && n.kind == nodeProperty && operatorName(n.name):
			err = p.unexpected()
		case p.tok.kind == tokenOpen:
			n, err = p.skipped(), p.skipParentheses()
		case p.tok.kind == tokenOther && p.tok.text == "/":
			n = p.skipped()
			if err = p.advance(); err == nil && p.tok.kind != tokenWord {
				err = p.unexpected()
			}
			if err == nil {
				err = p.advance()
			}
		default:
			return n, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// operatorName reports whether a word is that of an operator with two sides: no function has such a name, so that in
// "a and and (b)" an operand is missing.
func operatorName(word string) bool {
	_, ok := comparisonOf(word)
	return ok || arithmetic(word) || word == "and" || word == "or" || word == "in" || word == "has"
}

func (p *filterParser) parenthesis() (*node, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer p.shallower()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokenClose {
		return nil, p.unexpected()
	}
	return n, p.advance()
}
