package queues

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

const (
	// pageBytesMax is where a page ends although queues are left: metadata may be 8 KiB each. A page may be
	// shorter than maxresults (protocol/queue.md 6.1).
	pageBytesMax = 4 << 20
	// tailBytesMax bounds what follows the queues: the marker, and the ends of the elements.
	tailBytesMax = 1 << 10
)

// listing is what a List Queues asks for.
type listing struct {
	wire.Page
	metadata bool
}

func (c *call) parseListing() (l listing, err error) {
	q := c.r.Query
	l.Page, err = wire.ParsePage(q.Get("prefix"), q.Get("marker"), q.Get("maxresults"), storageerr.OutOfRangeInput)
	if err != nil {
		return l, err
	}
	for item := range q.Included() {
		if item != "metadata" {
			return l, wire.BadParameter("include", item, "The value is metadata.")
		}
		l.metadata = true
	}
	return l, nil
}

// listQueues is List Queues (protocol/queue.md 6.1). One request reads one snapshot of the catalog.
func (c *call) listQueues() error {
	l, err := c.parseListing()
	if err != nil {
		return err
	}
	share := c.answers.Of(c.r.Account.Name)
	head := c.listHead()
	doc, err := c.windows.Document(c.ctx, share, max(protocol.WindowBytes, len(head)+tailBytesMax), 0)
	if err != nil {
		return err
	}
	defer doc.Close()
	doc.Append(func(b []byte) []byte { return append(b, head...) })
	next, err := c.listPage(c.ctx, doc, l)
	if err != nil {
		return err
	}
	doc.Append(func(b []byte) []byte {
		b = wire.AppendElement(append(b, "</Queues>"...), "NextMarker", wire.NewMarker(next))
		return append(b, "</EnumerationResults>"...)
	})
	c.documentHeaders()
	c.w.Header()["Content-Length"] = []string{strconv.Itoa(doc.Len())}
	c.w.WriteHeader(http.StatusOK)
	doc.WriteTo(c.w)
	return nil
}

// listPage appends the queues of a page.
func (c *call) listPage(ctx context.Context, doc *protocol.Document, l listing) (next string, err error) {
	snap, err := ranges.Snapshot(ctx, c.reader(), c.o.Stamp.Route().Catalog())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return c.fillPage(ctx, snap, doc, l)
}

func (c *call) fillPage(ctx context.Context, r kv.Reader, doc *protocol.Document, l listing) (string, error) {
	budget := c.o.Scans.Begin(ctx, c.r.Account.Name)
	defer budget.End()
	var scratch []byte
	items := 0
	page := catalog.Listing{Service: geo.Queue, Account: c.r.Account.Name, Prefix: l.Prefix, From: l.From}
	return catalog.Page(ctx, r, page, budget, func(q *catalog.Container) (bool, error) {
		scratch = c.queueElement(scratch[:0], q, l.metadata)
		switch {
		case items == l.Items || doc.Len() >= pageBytesMax:
			return false, nil
		case doc.Grow(len(scratch) + tailBytesMax):
		case items == 0:
			return false, storageerr.ServerBusy // A page without a queue would not go on.
		default:
			return false, nil
		}
		doc.Append(func(b []byte) []byte { return append(b, scratch...) })
		items++
		return true, nil
	})
}

// listHead is the start of the document, which changed with 2013-08-15. In path style the endpoint has no slash at
// its end.
func (c *call) listHead() []byte {
	attribute, base := "ServiceEndpoint", c.r.Base
	if c.r.Version < protocol.Version20130815 {
		attribute = "AccountName"
	}
	if c.r.PathStyle {
		base = strings.TrimSuffix(base, "/")
	}
	b := append([]byte(wire.XMLStart+"<EnumerationResults "), attribute...)
	b = append(wire.AppendXML(append(b, `="`...), base), `">`...)
	for _, name := range [...]string{"Prefix", "Marker", "MaxResults"} {
		if value, sent := c.r.Query.Lookup(strings.ToLower(name)); sent {
			b = wire.AppendElement(b, name, value)
		}
	}
	return append(b, "<Queues>"...)
}

// queueElement appends one queue of a listing.
func (c *call) queueElement(b []byte, q *catalog.Container, metadata bool) []byte {
	name := "Name"
	if c.r.Version < protocol.Version20090919 {
		name = "QueueName"
	}
	b = wire.AppendElement(append(b, "<Queue>"...), name, q.Name)
	if c.r.Version < protocol.Version20130815 {
		b = wire.AppendElement(b, "Url", c.r.Base+q.Name)
	}
	if metadata {
		b = wire.AppendMetadata(b, q.Metadata)
	}
	return append(b, "</Queue>"...)
}
