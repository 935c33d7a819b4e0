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
// does not keep (snapshots, versions, deleted and copied blobs, tags, policies) are
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

// listContainers is List Containers (protocol/blob.md S1). One request reads one snapshot
// of the catalog.
func (c *call) listContainers() error {
	q, err := c.page()
	if err != nil {
		return err
	}
	include, err := c.parseInclude(includeOfContainers)
	if err != nil {
		return err
	}
	head := append([]byte(nil), wire.XMLStart...)
	if c.r.Version < protocol.Version20130815 {
		head = wire.AppendXML(append(head, `<EnumerationResults AccountName="`...), c.r.Base)
	} else {
		head = wire.AppendXML(append(head, `<EnumerationResults ServiceEndpoint="`...), c.r.Base)
	}
	head = c.sentElements(append(head, `">`...), "Prefix", "Marker", "MaxResults")
	p, err := c.newPage(q.Items, append(head, "<Containers>"...))
	if err != nil {
		return err
	}
	defer p.close()
	listing := catalog.Listing{Service: geo.Blob, Account: c.r.Account.Name, Prefix: q.Prefix, From: q.From}
	next, err := scan(c, geo.FirstRange(geo.Catalog), func(r kv.Reader, budget *services.Budget) (string, error) {
		return catalog.Page(c.ctx, r, listing, budget, func(container *catalog.Container) (bool, error) {
			return p.take(func(b []byte) []byte { return c.containerElement(b, container, include.has("metadata")) })
		})
	})
	if err != nil {
		return err
	}
	p.answer("</Containers>", next)
	return nil
}

// listBlobs is List Blobs (protocol/blob.md 7). One request reads one snapshot.
func (c *call) listBlobs() error {
	q, err := c.page()
	if err != nil {
		return err
	}
	include, err := c.parseInclude(includeOfBlobs)
	if err != nil {
		return err
	}
	l, err := c.parseListing(&q, include)
	if err != nil {
		return err
	}
	container, err := c.container()
	if err != nil {
		return err
	}
	l.Generation = container.Generation()
	l.Uncommitted, l.Now = include.has("uncommittedblobs"), c.now()
	p, err := c.newPage(q.Items, c.listHead(append([]byte(nil), wire.XMLStart...)))
	if err != nil {
		return err
	}
	defer p.close()
	next, err := scan(c, geo.FirstRange(geo.Blob), func(r kv.Reader, budget *services.Budget) (string, error) {
		return blobs.List(c.ctx, r, l, budget, func(item blobs.Item) (bool, error) {
			return p.take(func(b []byte) []byte { return c.itemElement(b, &item, include.has("metadata")) })
		})
	})
	if err != nil {
		return err
	}
	p.answer("</Blobs>", next)
	return nil
}

// listHead appends a listing's start, which changed with 2013-08-15.
func (c *call) listHead(doc []byte) []byte {
	if c.r.Version < protocol.Version20130815 {
		doc = wire.AppendXML(append(doc, `<EnumerationResults ContainerName="`...), c.r.Base+c.res.container)
	} else {
		doc = wire.AppendXML(append(doc, `<EnumerationResults ServiceEndpoint="`...), c.r.Base)
		doc = wire.AppendXML(append(doc, `" ContainerName="`...), c.res.container)
	}
	doc = append(doc, `">`...)
	doc = c.sentElements(doc, "Prefix", "Marker", "MaxResults", "Delimiter")
	return append(doc, "<Blobs>"...)
}

// page reads what the two listings ask for in the same words.
func (c *call) page() (wire.Page, error) {
	q := c.r.Query
	return wire.ParsePage(q.Get("prefix"), q.Get("marker"), q.Get("maxresults"))
}

// parseListing reads the parameters that List Blobs has alone. What would need a
// hierarchical account is refused.
func (c *call) parseListing(q *wire.Page, include includes) (*blobs.Listing, error) {
	l := &blobs.Listing{
		Account: c.r.Account.Name, Container: c.res.container, Prefix: q.Prefix, From: q.From,
		Delimiter: c.r.Query.Get("delimiter"),
	}
	if !utf8.ValidString(l.Delimiter) {
		return nil, wire.BadParameter("delimiter", l.Delimiter, "The value is not UTF-8.")
	}
	if l.Delimiter != "" && include.has("snapshots") {
		return nil, wire.BadParameter("include", "snapshots", "Snapshots cannot be listed with a delimiter.")
	}
	if v := c.r.Query.Get("showonly"); v != "" {
		return nil, wire.BadParameter("showonly", v, "The account has no hierarchical namespace.")
	}
	if c.r.Query.Get("endbefore") != "" {
		return nil, storageerr.NotImplemented // Of Arrow listings alone.
	}
	from := c.r.Query.Get("startfrom")
	if !utf8.ValidString(from) {
		return nil, wire.BadParameter("startFrom", from, "The value is not UTF-8.")
	}
	if c.r.Version >= version20260206 && l.From == "" {
		l.From = from // A marker is behind it.
	}
	return l, nil
}
