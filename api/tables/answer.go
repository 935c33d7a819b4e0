package tables

import (
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/tables/odata"
)

// AnswersBytesMax is the usual bound of documents held at once, in bytes.
const AnswersBytesMax = 64 << 20

// filterHeldPerByte is what a parsed filter takes for each byte of its text: a bare
// property, a space and an operator are a node and the pointer to it.
const filterHeldPerByte = 32

// documents are those that a request holds.
type documents struct {
	open []*protocol.Document
	// copies is how often a document is held: in a batch, as its part and in the answer too.
	copies int
}

func (d *documents) close() {
	for _, doc := range d.open {
		doc.Close()
	}
}

// show says what the documents of the answer show: entities of a table, or odata.Tables.
func (c *call) show(table string) *odata.Set {
	c.set = odata.Set{Base: c.r.Base, Account: string(c.r.Account.Name), Table: table}
	return &c.set
}

// newDocument begins a document whose first window has n bytes, and counts what the
// request's filter holds. It waits for room, so a request that has a document already
// closes that one first.
func (c *call) newDocument(n int, filter string) (*protocol.Document, error) {
	doc, err := c.windows.Document(c.ctx, c.Answers.Of(c.r.Account.Name), n, (c.documents.copies-1)*n+filterHeldPerByte*len(filter))
	if err == nil {
		c.documents.open = append(c.documents.open, doc)
	}
	return doc, err
}

// writeDocument sends a document.
func (c *call) writeDocument(doc *protocol.Document) {
	c.documentHeaders(doc.Len())
	c.w.WriteHeader(http.StatusOK)
	doc.WriteTo(c.w)
}

// writeBody sends a document that is bounded by the request's own size.
func (c *call) writeBody(status int, body []byte) {
	c.documentHeaders(len(body))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // The client is gone when this fails.
}

func (c *call) documentHeaders(length int) {
	h := c.w.Header()
	h["Content-Type"] = []string{c.codec.ContentType()}
	h["Content-Length"] = []string{strconv.Itoa(length)}
	c.odataHeaders()
}
