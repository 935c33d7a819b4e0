package atom

import (
	"bytes"

	"antipode/api/tables/edm"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Namespaces of protocol/table.md 7. Old clients read element names as text, so documents have
// exactly the prefixes d and m, and none for Atom.
const (
	atomSpace = "http://www.w3.org/2005/Atom"
	dataSpace = "http://schemas.microsoft.com/ado/2007/08/dataservices"
	metaSpace = dataSpace + "/metadata"
	scheme    = dataSpace + "/scheme"
)

const (
	declaration = `<?xml version="1.0" encoding="utf-8" standalone="yes"?>`
	prefixes    = ` xmlns:d="` + dataSpace + `" xmlns:m="` + metaSpace + `"`
	defaultNS   = ` xmlns="` + atomSpace + `"`
	noAuthor    = `<author><name /></author>`
	feedEnd     = `</feed>`
)

// Codec is the Atom form. It is a codec of package tables.
type Codec struct{}

// ContentType is the Content-Type of an answer.
func (Codec) ContentType() string { return "application/atom+xml;charset=utf-8" }

// AppendEntity appends an entity. An error means that its Props are not a well-formed list; what
// was appended by then must not be sent.
func (Codec) AppendEntity(dst []byte, set *odata.Set, at odata.Place, e tables.Entity) ([]byte, error) {
	a := encoder{set}
	dst = a.appendOpen(dst, at)
	dst = append(dst, ` m:etag="W/&quot;datetime'`...)
	dst = edm.AppendDateTime(dst, int64(e.Timestamp.Ticks()), "%3A")
	dst = append(dst, `'&quot;"`...)
	path := func(dst []byte) []byte { return odata.AppendEntityPath(dst, set.Table, e.PK, e.RK) }
	dst = a.appendHead(dst, at, path)
	dst, err := a.appendProperties(dst, e)
	return append(dst, `</m:properties></content></entry>`...), err
}

// AppendTable appends a table.
func (Codec) AppendTable(dst []byte, set *odata.Set, at odata.Place, name string) []byte {
	a := encoder{set}
	dst = a.appendOpen(dst, at)
	dst = a.appendHead(dst, at, func(dst []byte) []byte { return odata.AppendTablePath(dst, name) })
	dst = appendString(dst, "TableName", name)
	return append(dst, `</m:properties></content></entry>`...)
}

// AppendFeedStart opens a feed: of the entities of set.Table, or of tables where that is
// odata.Tables.
func (Codec) AppendFeedStart(dst []byte, set *odata.Set) []byte {
	a := encoder{set}
	dst = append(dst, declaration+`<feed xml:base="`...)
	dst = wire.AppendXML(dst, set.Base)
	dst = append(dst, `"`+prefixes+defaultNS+`><title type="text">`...)
	dst = wire.AppendXML(dst, set.Table)
	dst = append(dst, `</title><id>`...)
	dst = wire.AppendXML(dst, set.Base)
	dst = wire.AppendXML(dst, set.Table)
	dst = append(dst, `</id>`...)
	dst = a.appendUpdated(dst)
	dst = append(dst, `<link rel="self" title="`...)
	dst = wire.AppendXML(dst, set.Table)
	dst = append(dst, `" href="`...)
	dst = wire.AppendXML(dst, set.Table)
	return append(dst, `" />`...)
}

// AppendFeedEnd closes a feed. That of an empty one names the author, whom Atom asks for once.
func (Codec) AppendFeedEnd(dst []byte, rows int) []byte {
	if rows == 0 {
		dst = append(dst, noAuthor...)
	}
	return append(dst, feedEnd...)
}

// encoder writes one document, without blanks between its elements.
type encoder struct{ *odata.Set }

// appendOpen opens the tag of an entry. What is in a feed has the namespaces of the feed.
func (a encoder) appendOpen(dst []byte, at odata.Place) []byte {
	if at != odata.Alone {
		return append(dst, `<entry`...)
	}
	dst = append(dst, declaration+`<entry xml:base="`...)
	dst = wire.AppendXML(dst, a.Base)
	return append(dst, `"`+prefixes...)
}

// appendHead appends what follows m:etag, up to the properties. path appends the path of what the
// entry is about.
func (a encoder) appendHead(dst []byte, at odata.Place, path func(dst []byte) []byte) []byte {
	if at == odata.Alone {
		dst = append(dst, defaultNS...)
	}
	dst = append(dst, `><id>`...)
	dst = wire.AppendXML(dst, a.Base)
	dst = path(dst)
	dst = append(dst, `</id><title type="text"></title>`...)
	dst = a.appendUpdated(dst)
	dst = append(dst, noAuthor+`<link rel="edit" title="`...)
	dst = wire.AppendXML(dst, a.Table)
	dst = append(dst, `" href="`...)
	dst = path(dst)
	dst = append(dst, `" /><category term="`...)
	dst = wire.AppendXML(dst, a.Account)
	dst = append(dst, '.')
	dst = wire.AppendXML(dst, a.Table)
	return append(dst, `" scheme="`+scheme+`" /><content type="application/xml"><m:properties>`...)
}

func (a encoder) appendUpdated(dst []byte) []byte {
	dst = append(dst, `<updated>`...)
	dst = edm.AppendDateTime(dst, int64((a.Updated - a.Updated%geo.TicksPerSecond).Ticks()), ":")
	return append(dst, `</updated>`...)
}

// appendProperties appends the keys, the timestamp and the stored properties that the set shows,
// in stored order, then null for each name of its selection that the entity does not have.
func (a encoder) appendProperties(dst []byte, e tables.Entity) ([]byte, error) {
	var seen [odata.SelectMax]bool
	all := a.Select == nil || a.Select.All
	shows := func(name string) bool {
		if all {
			return true
		}
		i := a.Select.Index(name)
		if i >= 0 {
			seen[i] = true
		}
		return i >= 0
	}
	if shows(entity.PartitionKey) {
		dst = appendString(dst, entity.PartitionKey, e.PK)
	}
	if shows(entity.RowKey) {
		dst = appendString(dst, entity.RowKey, e.RK)
	}
	if shows(entity.Timestamp) {
		dst = append(dst, `<d:Timestamp m:type="Edm.DateTime">`...)
		dst = edm.AppendDateTime(dst, int64(e.Timestamp.Ticks()), ":")
		dst = append(dst, `</d:Timestamp>`...)
	}
	r := entity.Read(e.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		if all {
			dst = appendProperty(dst, p)
		} else if i := a.Select.IndexBytes(p.Name); i >= 0 {
			seen[i] = true
			dst = appendProperty(dst, p)
		}
	}
	if !all {
		for i, name := range a.Select.Names {
			// What no property may be called is no XML name, perhaps.
			if !seen[i] && entity.ValidateName([]byte(name)) == nil {
				dst = append(append(dst, `<d:`...), name...)
				dst = append(dst, ` m:null="true" />`...)
			}
		}
	}
	return dst, r.Err()
}

// appendProperty appends the element of a stored property.
func appendProperty(dst []byte, p entity.Property) []byte {
	if p.Type == entity.String {
		return appendString(dst, p.Name, p.Value)
	}
	dst = append(append(dst, `<d:`...), p.Name...)
	dst = append(append(dst, ` m:type="`...), p.Type.String()...)
	dst = append(dst, `">`...)
	if p.Type == entity.Double {
		dst = appendDouble(dst, p.Double())
	} else {
		dst = edm.AppendValue(dst, p)
	}
	return appendClose(dst, p.Name)
}

// appendString appends the element of a String, which needs no type. White space at its ends is
// marked, since readers may drop it.
func appendString[N, V ~string | ~[]byte](dst []byte, name N, value V) []byte {
	dst = append(append(dst, `<d:`...), name...)
	if n := len(value); n > 0 && (isSpace(value[0]) || isSpace(value[n-1])) {
		dst = append(dst, ` xml:space="preserve"`...)
	}
	dst = appendText(append(dst, '>'), value)
	return appendClose(dst, name)
}

func appendClose[N ~string | ~[]byte](dst []byte, name N) []byte {
	dst = append(append(dst, `</d:`...), name...)
	return append(dst, '>')
}

// appendDouble appends 1 where JSON has 1.0, and INF where that has Infinity
// (protocol/table.md 5.1, 5.2).
func appendDouble(dst []byte, v float64) []byte {
	switch word := edm.NotFinite(v); word {
	case "":
		return bytes.TrimSuffix(edm.AppendDouble(dst, v), []byte(".0"))
	case "NaN":
		return append(dst, word...)
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	return append(dst, "INF"...)
}
