package tables

import (
	"antipode/api/tables/odata"
	"antipode/services/tables"
)

// codec is one wire form of entities and tables. JSON at a level of metadata is one
// (json.Level), Atom is another (atom.Codec). bodyCodec chooses it by Content-Type, negotiate by
// Accept and $format.
//
// A feed is AppendFeedStart, AppendEntity or AppendTable for each row, and AppendFeedEnd. Its
// parts may be appended to different buffers.
type codec interface {
	// ContentType of a document.
	ContentType() string

	DecodeEntity(body []byte, mode odata.Mode) (odata.Incoming, error)
	DecodeTableName(body []byte) (string, error)

	AppendEntity(dst []byte, set *odata.Set, at odata.Place, e tables.Entity) ([]byte, error)
	AppendTable(dst []byte, set *odata.Set, at odata.Place, name string) []byte
	AppendFeedStart(dst []byte, set *odata.Set) []byte
	// AppendFeedEnd ends a feed of rows.
	AppendFeedEnd(dst []byte, rows int) []byte

	// FeedStartMax, TableMax and EntityMax are upper bounds of what is appended, in bytes. The
	// first has room for the end of an empty feed, too, the others for that of another one.
	// EntityBound is closer than EntityMax, and costs as much as appending: it looks at each
	// value.
	FeedStartMax(set *odata.Set) int
	TableMax(set *odata.Set, name string) int
	EntityMax(set *odata.Set, e tables.Entity) int
	EntityBound(set *odata.Set, e tables.Entity) int
}
