package odata

import (
	"strings"
	"unicode/utf8"

	"antipode/api/wire"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// ResourceKind is what a path of the Table service names.
type ResourceKind byte

// The resources of protocol/table.md 9.1.
const (
	KindRoot     ResourceKind = iota // the service: properties and stats
	KindTables                       // Tables, Tables()
	KindTable                        // Tables('T')
	KindEntities                     // T, T()
	KindEntity                       // T(PartitionKey='p',RowKey='r')
	KindBatch                        // $batch
)

// Resource is a parsed path.
type Resource struct {
	Kind ResourceKind
	// Table is the table's name in the case of the path: KindTable, KindEntities and
	// KindEntity. It is not checked for length: no table of such a name exists.
	Table string
	// PK and RK are legal keys: KindEntity.
	PK, RK string
}

// ParsePath reads the path of a request after the account, still percent-encoded as
// the client sent it, with or without its first slash: "Blogs(PartitionKey='a',
// RowKey='b')". Nothing is cleaned or merged; a plus is a plus. One slash, as sent, may
// stand at the end.
func ParsePath(raw string) (Resource, error) {
	text, ok := wire.UnescapePath(cutSlashes(raw))
	if !ok || !utf8.ValidString(text) {
		return Resource{}, storageerr.QuerySyntax
	}
	name, predicate, has := strings.Cut(text, "(")
	switch {
	case text == "":
		return Resource{Kind: KindRoot}, nil
	case text == "$batch":
		return Resource{Kind: KindBatch}, nil
	case name == "":
		return Resource{}, storageerr.QuerySyntax
	case !resourceName(name):
		return Resource{}, storageerr.InvalidResourceName
	case strings.EqualFold(name, Tables):
		return parseTables(predicate, has)
	}
	return parseEntities(name, predicate, has)
}

func cutSlashes(raw string) string {
	raw = strings.TrimPrefix(raw, "/")
	if raw == "/" { // An empty name, not an end.
		return raw
	}
	return strings.TrimSuffix(raw, "/")
}

// NamesTables reports whether a path that ParsePath takes is of KindTables or KindTable.
// It takes apart no key.
func NamesTables(raw string) bool {
	name, _, _ := strings.Cut(cutSlashes(raw), "(")
	if strings.Contains(name, "%") { // Perhaps of the parenthesis.
		r, err := ParsePath(raw)
		return err == nil && (r.Kind == KindTables || r.Kind == KindTable)
	}
	return strings.EqualFold(name, Tables)
}

// resourceName reports whether name has the characters of a table name; a $ opens the
// names of the analytics tables.
func resourceName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c != '$' || i > 0) && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func parseTables(predicate string, has bool) (Resource, error) {
	p := predicateParser{text: predicate}
	if p.blank(); !has || p.closes() {
		return Resource{Kind: KindTables}, nil
	}
	name, ok := p.quoted()
	if p.blank(); !ok || !p.closes() {
		return Resource{}, storageerr.QuerySyntax
	}
	return Resource{Kind: KindTable, Table: name}, nil
}

func parseEntities(name, predicate string, has bool) (Resource, error) {
	p := predicateParser{text: predicate}
	if p.blank(); !has || p.closes() {
		return Resource{Kind: KindEntities, Table: name}, nil
	}
	r := Resource{Kind: KindEntity, Table: name}
	var havePK, haveRK bool
	for i := range 2 {
		if i > 0 && !p.take(",") {
			return Resource{}, storageerr.QuerySyntax
		}
		p.blank()
		into, have := &r.PK, &havePK
		if !p.take(entity.PartitionKey) {
			into, have = &r.RK, &haveRK
			if !p.take(entity.RowKey) {
				return Resource{}, storageerr.QuerySyntax
			}
		}
		if p.blank(); *have || !p.take("=") {
			return Resource{}, storageerr.QuerySyntax
		}
		p.blank()
		var ok bool
		if *into, ok = p.quoted(); !ok {
			return Resource{}, storageerr.QuerySyntax
		}
		*have = true
		p.blank()
	}
	if !p.closes() {
		return Resource{}, storageerr.QuerySyntax
	}
	if err := entity.ValidateURLKey(r.PK); err != nil {
		return Resource{}, err
	}
	if err := entity.ValidateURLKey(r.RK); err != nil {
		return Resource{}, err
	}
	return r, nil
}

// predicateParser walks the decoded text after the opening parenthesis.
type predicateParser struct{ text string }

func (p *predicateParser) blank() { p.text = strings.TrimLeft(p.text, " \t") }

func (p *predicateParser) take(word string) (ok bool) {
	p.text, ok = strings.CutPrefix(p.text, word)
	return ok
}

// closes reports whether the closing parenthesis is all that is left.
func (p *predicateParser) closes() bool { return p.text == ")" }

// quoted reads a text between single quotes, in which two mean one.
func (p *predicateParser) quoted() (string, bool) {
	if !p.take("'") {
		return "", false
	}
	for i := 0; i < len(p.text); i++ {
		if p.text[i] != '\'' {
			continue
		}
		if i+1 < len(p.text) && p.text[i+1] == '\'' {
			i++
			continue
		}
		inner := p.text[:i]
		p.text = p.text[i+1:]
		return strings.ReplaceAll(inner, "''", "'"), true
	}
	return "", false
}

// AppendEntityPath appends T(PartitionKey='p',RowKey='r') as it stands in Location,
// odata.id and odata.editLink; behind {base} it is a request URI for the entity.
func AppendEntityPath(dst []byte, table, pk, rk string) []byte {
	dst = appendPercent(dst, table)
	dst = append(dst, "(PartitionKey='"...)
	dst = appendPercent(dst, pk)
	dst = append(dst, "',RowKey='"...)
	dst = appendPercent(dst, rk)
	return append(dst, "')"...)
}

// AppendTablePath appends Tables('T').
func AppendTablePath(dst []byte, table string) []byte {
	dst = append(dst, "Tables('"...)
	dst = appendPercent(dst, table)
	return append(dst, "')"...)
}

// appendPercent doubles quotes, which it leaves raw, and percent-encodes all but the
// unreserved characters.
func appendPercent(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			dst = append(dst, c)
		case c == '\'':
			dst = append(dst, "''"...)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
