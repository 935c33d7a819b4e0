package tables

import (
	"errors"
	"net/http"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// createTable is Create Table (protocol/table.md 9.2).
func (c *call) createTable() error {
	body, form, err := c.body()
	if err != nil {
		return err
	}
	name, err := form.DecodeTableName(body)
	if err != nil {
		return err
	}
	create := &catalog.Create{
		Service: geo.Table, Account: c.r.Account.Name, Name: name, Epoch: c.r.Account.Epoch, NameRest: c.NameRest,
	}
	c.odataHeaders()
	if err := c.Writer.Write(c.ctx, create); err != nil {
		return err
	}
	location := c.r.Base + string(odata.AppendTablePath(nil, name))
	return c.created(location, func(b []byte) ([]byte, error) { return c.codec.AppendTable(b, c.show(odata.Tables), name), nil })
}

// getTable is GET Tables('T').
func (c *call) getTable() error {
	c.odataHeaders()
	t, err := c.table()
	if errors.Is(err, storageerr.TableNotFound) {
		err = storageerr.ResourceNotFound
	}
	if err != nil {
		return err
	}
	c.writeBody(http.StatusOK, c.codec.AppendTable(nil, c.show(odata.Tables), t.Name))
	return nil
}

// deleteTable is Delete Table: answered after the table's range committed that the
// generation takes no more changes (R8).
func (c *call) deleteTable() error {
	del := &catalog.Delete{Service: geo.Table, Account: c.r.Account.Name, Name: c.res.Table}
	c.odataHeaders()
	if err := c.Writer.Write(c.ctx, del); err != nil {
		return err
	}
	g := del.Deleted.Generation()
	if err := c.Writer.CloseGeneration(c.ctx, geo.Table, c.r.Account.Name, c.res.Table, g); err != nil {
		return err
	}
	c.noContent()
	return nil
}

// queryTables is Query Tables with $top, $filter and continuation.
func (c *call) queryTables() error {
	top, err := c.top()
	if err != nil {
		return err
	}
	text := c.r.Query.Get("$filter")
	wanted, err := filter.Parse(text)
	if err != nil {
		return err
	}
	names := wanted.TableBounds()
	page := catalog.Listing{Service: geo.Table, Account: c.r.Account.Name, Low: names.Low, High: names.High, Bounded: names.Bounded}
	if token := c.r.Query.Get("nexttablename"); token != "" {
		if page.From, err = odata.DecodeToken(token); err != nil {
			return err
		}
	}
	set := c.show(odata.Tables)
	doc, err := c.newDocument(max(protocol.WindowBytes, 2*c.codec.FeedStartMax(set)), text)
	if err != nil {
		return err
	}
	doc.Append(func(b []byte) []byte { return c.codec.AppendFeedStart(b, set) })
	next := ""
	if top > 0 {
		if next, err = c.tablePage(doc, set, page, wanted, top); err != nil {
			return err
		}
	}
	if next != "" {
		c.w.Header()["X-Ms-Continuation-Nexttablename"] = []string{odata.EncodeToken(next)}
	}
	doc.Append(c.codec.AppendFeedEnd)
	c.writeDocument(doc)
	return nil
}

// tablePage appends the tables of a page from one snapshot of the catalog. The first one
// always fits: a document's first window holds it.
func (c *call) tablePage(doc *protocol.Document, set *odata.Set, page catalog.Listing, wanted *filter.Filter, top int) (next string, err error) {
	snap, err := ranges.Snapshot(c.ctx, c.Stamp, geo.FirstRange(geo.Catalog))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	rows, budget := 0, c.newBudget()
	defer budget.End()
	return catalog.Page(c.ctx, snap, page, budget, func(t *catalog.Container) (bool, error) {
		ok, work := wanted.MatchTable(t.Name)
		if _, err := budget.Spend(c.ctx, work); !ok || err != nil {
			return true, err
		}
		if rows == top || !doc.Grow(c.codec.TableMax(set, t.Name)) && rows > 0 {
			return false, nil
		}
		doc.Append(func(b []byte) []byte { return c.codec.AppendFeedTable(b, set, rows == 0, t.Name) })
		rows++
		return true, nil
	})
}

// neverBuilt are the OData options that this service never had (protocol/table.md 1.5): to
// ignore one would answer another question than was asked.
func neverBuilt() []string {
	return []string{"$orderby", "$skip", "$skiptoken", "$expand", "$inlinecount", "$apply"}
}

// top is $top, or the row cap (protocol/table.md 12), of a query that asks for nothing
// unbuilt.
func (c *call) top() (int, error) {
	for _, name := range neverBuilt() {
		if c.r.Query.Has(name) {
			return 0, storageerr.NotImplemented
		}
	}
	text, sent := c.r.Query.Lookup("$top")
	if !sent {
		return odata.TopMax, nil
	}
	return odata.ParseTop(text)
}
