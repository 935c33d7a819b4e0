package filter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"antipode/api/tables/edm"
	"antipode/api/wire"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

type tokenKind byte

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenLiteral
	tokenOpen
	tokenClose
	tokenOther // a comma, slash or colon: parts of what is not served
)

// token is one token of a filter.
type token struct {
	kind tokenKind
	text string
	lit  literal
	// start and end are byte offsets. An error points at the end of the token that
	// does not fit, as the service does.
	start, end int
}

// syntaxError is the row for a fault at byte offset at.
func syntaxError(text string, at int) error {
	units := entity.UTF16Len(text[:at])
	return storageerr.InvalidInput.Saying("Syntax error at position " + strconv.Itoa(units) + " in '" + text + "'.")
}

// lexToken reads the token at or after byte i of text.
func lexToken(text string, i int) (token, error) {
	for i < len(text) && isBlank(text[i]) {
		i++
	}
	t := token{start: i, end: i}
	if i == len(text) {
		return t, nil
	}
	switch c := text[i]; {
	case c == '(' || c == ')' || c == ',' || c == '/' || c == ':':
		t.end++
		switch t.kind = tokenOther; c {
		case '(':
			t.kind = tokenOpen
		case ')':
			t.kind = tokenClose
		}
		t.text = text[t.start:t.end]
		return t, nil
	case c == '\'':
		return lexQuoted(text, t, "")
	case c >= '0' && c <= '9' || c == '-' || c == '.':
		return lexNumber(text, t)
	}
	return lexWord(text, t)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// separated reports whether a word or literal may end before byte i.
func separated(text string, i int) bool {
	return i == len(text) || isBlank(text[i]) || strings.IndexByte("(),/:", text[i]) >= 0
}

func wordRune(r rune, first bool) bool {
	if r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) {
		return true
	}
	return !first && (unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc, unicode.Cf))
}

func lexWord(text string, t token) (token, error) {
	for i, r := range text[t.start:] {
		if !wordRune(r, i == 0) {
			break
		}
		t.end = t.start + i + utf8.RuneLen(r)
	}
	t.text = text[t.start:t.end]
	switch {
	case t.text == "":
		_, size := utf8.DecodeRuneInString(text[t.start:])
		return t, syntaxError(text, t.start+size)
	case t.end < len(text) && text[t.end] == '\'':
		return lexQuoted(text, t, t.text)
	case !separated(text, t.end):
		return t, syntaxError(text, t.end)
	}
	t.kind = tokenWord
	return t, nil
}

// lexQuoted reads the quoted part at t.end of a literal whose prefix was read.
func lexQuoted(text string, t token, prefix string) (token, error) {
	i := t.end + 1
	for ; i < len(text); i++ {
		if text[i] != '\'' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '\'' {
			i++
			continue
		}
		break
	}
	if i >= len(text) {
		return t, syntaxError(text, len(text))
	}
	inner := strings.ReplaceAll(text[t.end+1:i], "''", "'")
	if t.end = i + 1; !separated(text, t.end) {
		return t, syntaxError(text, t.end)
	}
	t.kind = tokenLiteral
	ok := true
	switch prefix {
	case "":
		t.lit = literal{typ: entity.String, text: inner}
	case "datetime":
		t.lit.typ = entity.DateTime
		t.lit.num, ok = edm.ParseDateTime([]byte(inner))
	case "guid":
		var g [16]byte
		g, ok = edm.ParseGUID([]byte(inner))
		t.lit = literal{typ: entity.GUID, text: string(g[:])}
	case "X", "binary":
		t.lit.typ = entity.Binary
		t.lit.text, ok = parseHex(inner)
	default:
		return t, syntaxError(text, t.end)
	}
	if !ok {
		return t, storageerr.InvalidInput
	}
	return t, nil
}

func parseHex(s string) (string, bool) {
	if len(s)%2 != 0 {
		return "", false
	}
	b := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		high, ok1 := wire.HexDigit(s[i])
		low, ok2 := wire.HexDigit(s[i+1])
		if !ok1 || !ok2 {
			return "", false
		}
		b = append(b, high<<4|low)
	}
	return string(b), true
}

// lexNumber reads an Int32, Int64 or Double, or -INF.
func lexNumber(text string, t token) (token, error) {
	i := t.start
	if text[i] == '-' {
		i++
	}
	if strings.HasPrefix(text[i:], "INF") {
		return finishNumber(text, t, i+len("INF"), text[t.start:i+len("INF")], entity.Double)
	}
	whole := countDigits(text[i:])
	i += whole
	typ := entity.Int32
	if i < len(text) && text[i] == '.' {
		fraction := countDigits(text[i+1:])
		if whole+fraction == 0 {
			return t, syntaxError(text, i+1)
		}
		i += 1 + fraction
		typ = entity.Double
	} else if whole == 0 {
		return t, syntaxError(text, i)
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		j := i + 1
		if j < len(text) && (text[j] == '+' || text[j] == '-') {
			j++
		}
		n := countDigits(text[j:])
		if n == 0 {
			return t, syntaxError(text, j)
		}
		i = j + n
		typ = entity.Double
	}
	digits := text[t.start:i]
	if i < len(text) {
		switch c := text[i] | 0x20; {
		case c == 'l' && typ == entity.Int32:
			typ = entity.Int64
			i++
		case c == 'd':
			typ = entity.Double
			i++
		}
	}
	return finishNumber(text, t, i, digits, typ)
}

// finishNumber makes the literal of type typ that ends at byte end.
func finishNumber(text string, t token, end int, digits string, typ entity.Type) (token, error) {
	if !separated(text, end) {
		// The service lexes on to the end of what is glued to the number.
		return t, syntaxError(text, end+1)
	}
	t.kind, t.end, t.text = tokenLiteral, end, text[t.start:end]
	if typ == entity.Double {
		v, ok := edm.ParseDouble([]byte(digits))
		if !ok {
			return t, storageerr.InvalidInput
		}
		t.lit = doubleLiteral(v)
		return t, nil
	}
	v, ok := edm.ParseInteger([]byte(digits), 64)
	if !ok {
		return t, storageerr.InvalidInput
	}
	if int64(int32(v)) != v {
		typ = entity.Int64
	}
	t.lit = literal{typ: typ, num: v}
	return t, nil
}

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
