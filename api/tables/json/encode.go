package json

import (
	"strings"

	"antipode/api/tables/edm"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Level is how much metadata a JSON document has. Each is a codec of package tables.
type Level byte

// The levels of protocol/table.md 6.1.
const (
	NoMetadata Level = iota
	MinimalMetadata
	FullMetadata
)

// String returns the word used in Accept.
func (l Level) String() string {
	switch l {
	case NoMetadata:
		return "nometadata"
	case MinimalMetadata:
		return "minimalmetadata"
	}
	return "fullmetadata"
}

// ContentType is the Content-Type of an answer at this level.
func (l Level) ContentType() string {
	return "application/json;odata=" + l.String() + ";streaming=true;charset=utf-8"
}

// encoder writes one document at a level. Documents are one line, without blanks and
// without a byte order mark.
type encoder struct {
	level Level
	*odata.Set
}

// AppendEntity appends an entity. An error means that its Props are not a well-formed list;
// what was appended by then must not be sent.
func (l Level) AppendEntity(dst []byte, set *odata.Set, at odata.Place, e tables.Entity) ([]byte, error) {
	a := encoder{l, set}
	return a.appendMembers(a.appendOpen(dst, at), e)
}

// AppendTable appends a table.
func (l Level) AppendTable(dst []byte, set *odata.Set, at odata.Place, name string) []byte {
	a := encoder{l, set}
	return a.appendTableMembers(a.appendOpen(dst, at), name)
}

// AppendFeedStart opens a feed: of the entities of set.Table, or of tables where that is
// odata.Tables.
func (l Level) AppendFeedStart(dst []byte, set *odata.Set) []byte {
	dst = append(dst, '{')
	if l != NoMetadata {
		dst = encoder{l, set}.appendMetadata(dst)
		if set.Select != nil {
			dst = append(dst, "&$select="...)
			dst = appendEscaped(dst, strings.ReplaceAll(set.Select.Text, " ", "%20"))
		}
		dst = append(dst, `",`...)
	}
	return append(dst, `"value":[`...)
}

// AppendFeedEnd closes a feed.
func (l Level) AppendFeedEnd(dst []byte, _ int) []byte { return append(dst, "]}"...) }

func (a encoder) appendTableMembers(dst []byte, name string) []byte {
	if a.level == FullMetadata {
		dst = a.appendType(dst, odata.Tables)
		dst = append(dst, `"odata.id":"`...)
		dst = appendEscaped(dst, a.Base)
		dst = odata.AppendTablePath(dst, name)
		dst = append(dst, `","odata.editLink":"`...)
		dst = odata.AppendTablePath(dst, name)
		dst = append(dst, `",`...)
	}
	dst = append(dst, `"TableName":`...)
	return append(appendQuoted(dst, name), '}')
}

// appendOpen opens the object of a row.
func (a encoder) appendOpen(dst []byte, at odata.Place) []byte {
	if at == odata.Later {
		dst = append(dst, ',')
	}
	dst = append(dst, '{')
	if at == odata.Alone && a.level != NoMetadata {
		dst = a.appendMetadata(dst)
		dst = append(dst, `/@Element",`...)
	}
	return dst
}

// appendMetadata appends odata.metadata up to the name of the set.
func (a encoder) appendMetadata(dst []byte) []byte {
	dst = append(dst, `"odata.metadata":"`...)
	dst = appendEscaped(dst, a.Base)
	dst = append(dst, "$metadata#"...)
	return appendEscaped(dst, a.Table)
}

func (a encoder) appendType(dst []byte, set string) []byte {
	dst = append(dst, `"odata.type":"`...)
	dst = appendEscaped(dst, a.Account)
	dst = append(dst, '.')
	dst = appendEscaped(dst, set)
	return append(dst, `",`...)
}

// appendMembers appends what follows odata.metadata, and the closing brace.
func (a encoder) appendMembers(dst []byte, e tables.Entity) ([]byte, error) {
	if a.level == FullMetadata {
		dst = a.appendType(dst, a.Table)
		dst = append(dst, `"odata.id":"`...)
		dst = appendEscaped(dst, a.Base)
		dst = odata.AppendEntityPath(dst, a.Table, e.PK, e.RK)
		dst = append(dst, `",`...)
	}
	if a.level != NoMetadata {
		dst = append(dst, `"odata.etag":"W/\"datetime'`...)
		dst = edm.AppendDateTime(dst, int64(e.Timestamp.Ticks()), "%3A")
		dst = append(dst, `'\"",`...)
	}
	if a.level == FullMetadata {
		dst = append(dst, `"odata.editLink":"`...)
		dst = odata.AppendEntityPath(dst, a.Table, e.PK, e.RK)
		dst = append(dst, `",`...)
	}
	if a.Select != nil && !a.Select.All {
		return a.appendSelected(dst, e)
	}
	dst = appendQuoted(append(dst, `"PartitionKey":`...), e.PK)
	dst = appendQuoted(append(dst, `,"RowKey":`...), e.RK)
	dst = a.appendTimestamp(append(dst, ','), e.Timestamp)
	r := entity.Read(e.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		dst = a.appendProperty(append(dst, ','), p)
	}
	return append(dst, '}'), r.Err()
}

func (a encoder) appendTimestamp(dst []byte, ts geo.Timestamp) []byte {
	if a.level == FullMetadata {
		dst = append(dst, `"Timestamp@odata.type":"Edm.DateTime",`...)
	}
	dst = append(dst, `"Timestamp":"`...)
	dst = edm.AppendDateTime(dst, int64(ts.Ticks()), ":")
	return append(dst, '"')
}

// appendSelected writes the keys, the timestamp and the stored properties that are
// named, in stored order, then null for each name that the entity does not have.
func (a encoder) appendSelected(dst []byte, e tables.Entity) ([]byte, error) {
	s := a.Select
	var seen [odata.SelectMax]bool
	if i := s.Index(entity.PartitionKey); i >= 0 {
		seen[i] = true
		dst = appendQuoted(append(dst, `"PartitionKey":`...), e.PK)
		dst = append(dst, ',')
	}
	if i := s.Index(entity.RowKey); i >= 0 {
		seen[i] = true
		dst = appendQuoted(append(dst, `"RowKey":`...), e.RK)
		dst = append(dst, ',')
	}
	if i := s.Index(entity.Timestamp); i >= 0 {
		seen[i] = true
		dst = append(a.appendTimestamp(dst, e.Timestamp), ',')
	}
	r := entity.Read(e.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		if i := s.IndexBytes(p.Name); i >= 0 {
			seen[i] = true
			dst = append(a.appendProperty(dst, p), ',')
		}
	}
	for i, name := range s.Names {
		if !seen[i] {
			dst = append(appendQuoted(dst, name), ":null,"...)
		}
	}
	// Every name has left a comma, and there is one name at least.
	dst[len(dst)-1] = '}'
	return dst, r.Err()
}

// appendProperty appends the annotation where the level asks for one, name and value.
func (a encoder) appendProperty(dst []byte, p entity.Property) []byte {
	var word string
	if p.Type == entity.Double {
		word = edm.NotFinite(p.Double())
	}
	if a.level != NoMetadata {
		switch p.Type {
		case entity.String, entity.Int32, entity.Boolean:
		case entity.Double:
			if word != "" {
				dst = appendAnnotation(dst, p)
			}
		default:
			dst = appendAnnotation(dst, p)
		}
	}
	dst = append(appendQuoted(dst, p.Name), ':')
	switch p.Type {
	case entity.String:
		return appendQuoted(dst, p.Value)
	case entity.Int32, entity.Boolean:
		return edm.AppendValue(dst, p)
	case entity.Double:
		if word == "" {
			return edm.AppendDouble(dst, p.Double())
		}
		return appendQuoted(dst, word)
	}
	return append(edm.AppendValue(append(dst, '"'), p), '"')
}

func appendAnnotation(dst []byte, p entity.Property) []byte {
	dst = appendEscaped(append(dst, '"'), p.Name)
	dst = append(dst, `@odata.type":"`...)
	dst = append(dst, p.Type.String()...)
	return append(dst, `",`...)
}

// appendQuoted appends s as a JSON string.
func appendQuoted[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

// appendEscaped appends s with the escapes JSON asks for and no other. s is copied
// first and then corrected in place from the first byte that needs an escape on, which
// most texts do not have.
func appendEscaped[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := len(dst)
	dst = append(dst, s...)
	at, _ := plain(dst, start)
	if at == len(dst) {
		return dst
	}
	i := at - start
	dst = dst[:at]
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < 0x20:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
