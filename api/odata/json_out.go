package odata

import (
	"encoding/base64"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/services/tables/entity"
)

// Level is how much metadata a JSON document carries.
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

// Answer is what the documents of one answer have in common. Its methods append one
// line of JSON, no blanks, no byte order mark, and do not change it.
//
// A feed is AppendFeedStart, AppendFeedEntity for each row, AppendEnd; a list of
// tables is AppendTablesStart, AppendTablesEntry for each, AppendEnd. Parts of one document
// may be appended to different buffers: first is said, not looked for.
type Answer struct {
	Level Level
	// Base is the service root as the client addressed it, with its last slash.
	Base string
	// Account is the account's name, which types are named after.
	Account string
	// Table is the name as stored. Unused in documents about tables.
	Table string
	// Select limits what an entity shows; nil shows everything.
	Select *Selection
}

// AppendEntity appends the document of a single entity. An error means props is not a
// well-formed list; what was appended by then must not be sent.
func (a *Answer) AppendEntity(dst []byte, pk, rk string, ts geo.Timestamp, props []byte) ([]byte, error) {
	dst = append(dst, '{')
	if a.Level != NoMetadata {
		dst = a.appendMetadata(dst, a.Table)
		dst = append(dst, `/@Element",`...)
	}
	return a.appendMembers(dst, pk, rk, ts, props)
}

// AppendFeedStart opens a feed of entities.
func (a *Answer) AppendFeedStart(dst []byte) []byte {
	dst = append(dst, '{')
	if a.Level != NoMetadata {
		dst = a.appendMetadata(dst, a.Table)
		if a.Select != nil {
			dst = append(dst, "&$select="...)
			dst = appendEscaped(dst, strings.ReplaceAll(a.Select.text, " ", "%20"))
		}
		dst = append(dst, `",`...)
	}
	return append(dst, `"value":[`...)
}

// AppendFeedEntity appends one row of a feed.
func (a *Answer) AppendFeedEntity(dst []byte, first bool, pk, rk string, ts geo.Timestamp, props []byte) ([]byte, error) {
	return a.appendMembers(appendOpen(dst, first), pk, rk, ts, props)
}

// AppendEnd closes a feed or a list of tables.
func (a *Answer) AppendEnd(dst []byte) []byte { return append(dst, "]}"...) }

// AppendTable appends the document of a single table.
func (a *Answer) AppendTable(dst []byte, name string) []byte {
	dst = append(dst, '{')
	if a.Level != NoMetadata {
		dst = a.appendMetadata(dst, "Tables")
		dst = append(dst, `/@Element",`...)
	}
	return a.appendTableMembers(dst, name)
}

// AppendTablesStart opens a list of tables.
func (a *Answer) AppendTablesStart(dst []byte) []byte {
	dst = append(dst, '{')
	if a.Level != NoMetadata {
		dst = a.appendMetadata(dst, "Tables")
		dst = append(dst, `",`...)
	}
	return append(dst, `"value":[`...)
}

// AppendTablesEntry appends one table of a list.
func (a *Answer) AppendTablesEntry(dst []byte, first bool, name string) []byte {
	return a.appendTableMembers(appendOpen(dst, first), name)
}

func (a *Answer) appendTableMembers(dst []byte, name string) []byte {
	if a.Level == FullMetadata {
		dst = a.appendType(dst, "Tables")
		dst = append(dst, `"odata.id":"`...)
		dst = appendEscaped(dst, a.Base)
		dst = AppendTablePath(dst, name)
		dst = append(dst, `","odata.editLink":"`...)
		dst = AppendTablePath(dst, name)
		dst = append(dst, `",`...)
	}
	dst = append(dst, `"TableName":`...)
	return append(appendQuoted(dst, name), '}')
}

func appendOpen(dst []byte, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(dst, '{')
}

// appendMetadata appends odata.metadata up to the name of the set.
func (a *Answer) appendMetadata(dst []byte, set string) []byte {
	dst = append(dst, `"odata.metadata":"`...)
	dst = appendEscaped(dst, a.Base)
	dst = append(dst, "$metadata#"...)
	return appendEscaped(dst, set)
}

func (a *Answer) appendType(dst []byte, set string) []byte {
	dst = append(dst, `"odata.type":"`...)
	dst = appendEscaped(dst, a.Account)
	dst = append(dst, '.')
	dst = appendEscaped(dst, set)
	return append(dst, `",`...)
}

// appendMembers appends what follows odata.metadata, and the closing brace.
func (a *Answer) appendMembers(dst []byte, pk, rk string, ts geo.Timestamp, props []byte) ([]byte, error) {
	if a.Level == FullMetadata {
		dst = a.appendType(dst, a.Table)
		dst = append(dst, `"odata.id":"`...)
		dst = appendEscaped(dst, a.Base)
		dst = AppendEntityPath(dst, a.Table, pk, rk)
		dst = append(dst, `",`...)
	}
	if a.Level != NoMetadata {
		dst = append(dst, `"odata.etag":"W/\"datetime'`...)
		dst = appendDateTime(dst, int64(ts.Ticks()), "%3A")
		dst = append(dst, `'\"",`...)
	}
	if a.Level == FullMetadata {
		dst = append(dst, `"odata.editLink":"`...)
		dst = AppendEntityPath(dst, a.Table, pk, rk)
		dst = append(dst, `",`...)
	}
	if a.Select != nil && !a.Select.all {
		return a.appendSelected(dst, pk, rk, ts, props)
	}
	dst = appendQuoted(append(dst, `"PartitionKey":`...), pk)
	dst = appendQuoted(append(dst, `,"RowKey":`...), rk)
	dst = a.appendTimestamp(append(dst, ','), ts)
	r := entity.Read(props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		dst = a.appendProperty(append(dst, ','), p)
	}
	return append(dst, '}'), r.Err()
}

func (a *Answer) appendTimestamp(dst []byte, ts geo.Timestamp) []byte {
	if a.Level == FullMetadata {
		dst = append(dst, `"Timestamp@odata.type":"Edm.DateTime",`...)
	}
	dst = append(dst, `"Timestamp":"`...)
	dst = appendDateTime(dst, int64(ts.Ticks()), ":")
	return append(dst, '"')
}

// appendSelected writes the keys, the timestamp and the stored properties that are
// named, in stored order, then null for each name that the entity does not have.
func (a *Answer) appendSelected(dst []byte, pk, rk string, ts geo.Timestamp, props []byte) ([]byte, error) {
	s := a.Select
	var seen [selectMax]bool
	if i := s.index(entity.PartitionKey); i >= 0 {
		seen[i] = true
		dst = appendQuoted(append(dst, `"PartitionKey":`...), pk)
		dst = append(dst, ',')
	}
	if i := s.index(entity.RowKey); i >= 0 {
		seen[i] = true
		dst = appendQuoted(append(dst, `"RowKey":`...), rk)
		dst = append(dst, ',')
	}
	if i := s.index(entity.Timestamp); i >= 0 {
		seen[i] = true
		dst = append(a.appendTimestamp(dst, ts), ',')
	}
	r := entity.Read(props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		if i := s.indexBytes(p.Name); i >= 0 {
			seen[i] = true
			dst = append(a.appendProperty(dst, p), ',')
		}
	}
	for i, name := range s.names {
		if !seen[i] {
			dst = append(appendQuoted(dst, name), ":null,"...)
		}
	}
	// Every name has left a comma, and there is one name at least.
	dst[len(dst)-1] = '}'
	return dst, r.Err()
}

// appendProperty appends the annotation where the level asks for one, name and value.
func (a *Answer) appendProperty(dst []byte, p entity.Property) []byte {
	var word string
	if p.Type == entity.Double {
		word = notFinite(p.Double())
	}
	if a.Level != NoMetadata {
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
	case entity.Int32:
		return strconv.AppendInt(dst, int64(p.Int32()), 10)
	case entity.Boolean:
		if p.Boolean() {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case entity.Double:
		if word == "" {
			return appendDouble(dst, p.Double())
		}
		return appendQuoted(dst, word)
	}
	dst = append(dst, '"')
	switch p.Type {
	case entity.Int64:
		dst = strconv.AppendInt(dst, p.Int64(), 10)
	case entity.DateTime:
		dst = appendDateTime(dst, p.DateTime(), ":")
	case entity.GUID:
		dst = appendGUID(dst, p.GUID())
	case entity.Binary:
		dst = base64.StdEncoding.AppendEncode(dst, p.Value)
	}
	return append(dst, '"')
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
