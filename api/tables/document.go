package tables

import (
	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/geo"
)

// AnswersBytesMax is the usual bound of documents held at once, in bytes. An account has half of it: 120 pages of 1,000
// entities of 1 KiB. With more at once, pages are short.
const AnswersBytesMax = 256 << 20

// filterHeldPerByte is what a parsed filter takes for each byte of its text: a bare
// property, a space and an operator are a node and the pointer to it.
const filterHeldPerByte = 32

// show says what the documents of the answer show: entities of a table, or odata.Tables.
func (c *call) show(table string) *odata.Set {
	c.set = odata.Set{
		Base: c.r.Base, Account: string(c.r.Account.Name), Table: table, Select: c.in.selection,
		Updated: geo.TimestampOf(c.r.At),
	}
	return &c.set
}

// newDocument begins the document of the answer with a first window of n bytes, and counts
// what the filter holds. It waits for room, so a call that has a document already closes that
// one first.
func (c *call) newDocument(n int) (doc *protocol.Document, err error) {
	room, extra := c.Answers.Of(c.r.Account.Name), (c.copies-1)*n+filterHeldPerByte*len(c.in.filterText)
	if doc, err = c.windows.Document(c.ctx, room, n, extra); err == nil {
		c.document = doc
	}
	return doc, err
}
