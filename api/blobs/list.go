package blobs

import (
	"unicode/utf8"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// Items of include and the versions they came with. Those that name what this server
// does not keep (versions, deleted blobs, policies) are
// taken and add nothing: there are none to list.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	includeOfContainers = map[string]protocol.Version{
		"metadata": protocol.Version20090919, "deleted": protocol.Version20191212, "system": version20210212,
	}
	includeOfBlobs = map[string]protocol.Version{
		"metadata": protocol.Version20090919, "uncommittedblobs": protocol.Version20090919, "snapshots": protocol.Version20090919,
		"copy": protocol.Version20120212, "deleted": protocol.Version20170729, "tags": protocol.Version20191212,
		"versions": protocol.Version20191212, "deletedwithversions": version20201002,
		"immutabilitypolicy": version20200612, "legalhold": version20200612,
	}
)

// containersAsked is what a List Containers asks for.
type containersAsked struct {
	catalog.Listing
	itemsMax int
	metadata bool
	// echo repeats the parameters that were sent.
	echo []byte
}

// parseListContainers reads the parameters of List Containers.
func (c *call) parseListContainers() (a containersAsked, err error) {
	sent := c.r.Query
	q, err := wire.ParsePage(sent.Get("prefix"), sent.Get("marker"), sent.Get("maxresults"), storageerr.OutOfRangeInput)
	if err != nil {
		return a, err
	}
	include, err := c.parseInclude(includeOfContainers)
	return containersAsked{
		Listing:  catalog.Listing{Service: geo.Blob, Account: c.r.Account.Name, Prefix: q.Prefix, From: q.From},
		itemsMax: q.Items, metadata: include.has("metadata"), echo: c.sentElements(nil, "Prefix", "Marker", "MaxResults"),
	}, err
}

// listContainers is List Containers (protocol/blob.md S1). One request reads one snapshot
// of the catalog.
func (c *call) listContainers(asked containersAsked) error {
	head := append([]byte(nil), wire.XMLStart...)
	if c.r.Version < protocol.Version20130815 {
		head = wire.AppendXML(append(head, `<EnumerationResults AccountName="`...), c.r.Base)
	} else {
		head = wire.AppendXML(append(head, `<EnumerationResults ServiceEndpoint="`...), c.r.Base)
	}
	head = append(append(head, `">`...), asked.echo...)
	p, err := c.newPage(asked.itemsMax, append(head, "<Containers>"...))
	if err != nil {
		return err
	}
	defer p.close()
	next, err := scan(c, c.o.Stamp.Route().Catalog(), func(r kv.Reader, budget *services.Budget) (string, error) {
		return catalog.Page(c.ctx, r, asked.Listing, budget, func(container *catalog.Container) (bool, error) {
			return p.take(func(b []byte) []byte { return c.containerElement(b, container, asked.metadata) })
		})
	})
	if err != nil {
		return err
	}
	p.answer("</Containers>", wire.NewMarker(next))
	return nil
}

// blobsAsked is what a List Blobs asks for.
type blobsAsked struct {
	*blobs.Listing
	itemsMax             int
	metadata, tags, copy bool
	// echo repeats the parameters that were sent.
	echo []byte
}

// parseListBlobs reads the parameters of List Blobs.
func (c *call) parseListBlobs() (a blobsAsked, err error) {
	sent := c.r.Query
	q, err := wire.ParsePage(sent.Get("prefix"), "", sent.Get("maxresults"), nil)
	if err != nil {
		return a, err
	}
	marker := sent.Get("marker")
	from, ok := parseMarker(marker)
	if !ok {
		return a, wire.BadParameter("marker", marker, "The value is none that this service gave.")
	}
	include, err := c.parseInclude(includeOfBlobs)
	if err != nil {
		return a, err
	}
	l, err := c.parseListing(&q, from, include)
	echo := c.sentElements(nil, "Prefix", "Marker", "MaxResults", "Delimiter")
	return blobsAsked{l, q.Items, include.has("metadata"), include.has("tags"), include.has("copy"), echo}, err
}

// newMarker is the marker of the page that begins at an entry; empty for none.
func newMarker(p blobs.Position) string {
	if p.Snapshot == 0 {
		return wire.NewMarker(p.Name)
	}
	return wire.NewMarkerAt(p.Name, uint64(p.Snapshot))
}

// parseMarker is the inverse of newMarker; ok is false for any other text.
func parseMarker(text string) (p blobs.Position, ok bool) {
	if text == "" {
		return p, true
	}
	name, at, ok := wire.ParseMarkerAt(text)
	return blobs.Position{Name: name, Snapshot: geo.Timestamp(at)}, ok
}

// listBlobs is List Blobs (protocol/blob.md 7). One request reads one snapshot.
func (c *call) listBlobs(asked blobsAsked) error {
	container, err := c.container()
	if err != nil {
		return err
	}
	asked.Generation, asked.Now = container.Generation(), c.now()
	p, err := c.newPage(asked.itemsMax, c.listHead(append([]byte(nil), wire.XMLStart...), asked.echo))
	if err != nil {
		return err
	}
	defer p.close()
	next, err := scan(c, c.o.Stamp.Route().At(asked.First()), func(r kv.Reader, budget *services.Budget) (blobs.Position, error) {
		return blobs.List(c.ctx, r, asked.Listing, budget, func(item blobs.Item) (bool, error) {
			item.Blob.SettleTier(asked.Now)
			return p.take(func(b []byte) []byte { return c.itemElement(b, &item, &asked) })
		})
	})
	if err != nil {
		return err
	}
	p.answer("</Blobs>", newMarker(next))
	return nil
}

// listHead appends a listing's start, which changed with 2013-08-15.
func (c *call) listHead(doc, echo []byte) []byte {
	if c.r.Version < protocol.Version20130815 {
		doc = wire.AppendXML(append(doc, `<EnumerationResults ContainerName="`...), c.r.Base+c.res.container)
	} else {
		doc = wire.AppendXML(append(doc, `<EnumerationResults ServiceEndpoint="`...), c.r.Base)
		doc = wire.AppendXML(append(doc, `" ContainerName="`...), c.res.container)
	}
	doc = append(append(doc, `">`...), echo...)
	return append(doc, "<Blobs>"...)
}

// parseListing reads the parameters that List Blobs has alone. What would need a
// hierarchical account is refused.
func (c *call) parseListing(q *wire.Page, after blobs.Position, include includes) (*blobs.Listing, error) {
	l := &blobs.Listing{
		Account: c.r.Account.Name, Container: c.res.container, Prefix: q.Prefix, From: after,
		Delimiter: c.r.Query.Get("delimiter"), Uncommitted: include.has("uncommittedblobs"), Snapshots: include.has("snapshots"),
	}
	if !utf8.ValidString(l.Delimiter) {
		return nil, wire.BadParameter("delimiter", l.Delimiter, "The value is not UTF-8.")
	}
	if l.Delimiter != "" && l.Snapshots {
		return nil, wire.BadParameter("include", "snapshots", "Snapshots cannot be listed with a delimiter.")
	}
	if v := c.r.Query.Get("showonly"); v != "" {
		return nil, wire.BadParameter("showonly", v, "The account has no hierarchical namespace.")
	}
	from, before := c.r.Query.Get("startfrom"), c.r.Query.Get("endbefore")
	if !utf8.ValidString(from) {
		return nil, wire.BadParameter("startFrom", from, "The value is not UTF-8.")
	}
	if !utf8.ValidString(before) {
		return nil, wire.BadParameter("endBefore", before, "The value is not UTF-8.")
	}
	if c.r.Version >= version20260206 && l.From.Name == "" {
		l.From.Name = from // A marker is behind it.
	}
	if c.r.Version >= version20260606 {
		l.Before = before
	}
	return l, nil
}
