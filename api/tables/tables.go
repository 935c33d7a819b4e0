package tables

import (
	"errors"
	"net/http"

	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// decodeName decodes the table that is to be created.
func (c *call) decodeName(body []byte) (err error) {
	c.in.res.Table, err = c.in.body.DecodeTableName(body)
	return err
}

// createTable is Create Table (protocol/table.md 9.2).
func (c *call) createTable() (a answer, err error) {
	name := c.in.res.Table
	create := &catalog.Create{
		Service: geo.Table, Account: c.r.Account.Name, Name: name, NameRest: c.NameRest,
	}
	if err := c.Writer.Write(c.ctx, create); err != nil {
		return a, err
	}
	a.status, a.location = http.StatusNoContent, c.r.Base+string(odata.AppendTablePath(nil, name))
	if c.in.codec != nil {
		c.answerTable(&a, http.StatusCreated, name)
	}
	return a, nil
}

// getTable is GET Tables('T').
func (c *call) getTable() (a answer, err error) {
	t, err := c.table()
	if errors.Is(err, storageerr.TableNotFound) {
		err = storageerr.ResourceNotFound
	}
	if err == nil {
		c.answerTable(&a, http.StatusOK, t.Name)
	}
	return a, err
}

// answerTable makes a the document of a table.
func (c *call) answerTable(a *answer, status int, name string) {
	a.status, a.contentType = status, c.in.codec.ContentType()
	a.body = c.in.codec.AppendTable(make([]byte, 0, createdBytes), c.show(odata.Tables), odata.Alone, name)
}

// deleteTable is Delete Table: answered after the table's range committed that the
// generation takes no more changes (R8).
func (c *call) deleteTable() (answer, error) {
	del := &catalog.Delete{Service: geo.Table, Account: c.r.Account.Name, Name: c.in.res.Table}
	if err := c.Writer.Write(c.ctx, del); err != nil {
		return answer{}, err
	}
	g := del.Deleted.Generation()
	err := c.Writer.CloseGeneration(c.ctx, geo.Table, c.r.Account.Name, c.in.res.Table, g)
	return answer{status: http.StatusNoContent}, err
}

// queryTables is Query Tables with $top, $filter and continuation.
func (c *call) queryTables() (a answer, err error) {
	form, set := c.in.codec, c.show(odata.Tables)
	doc, err := c.newDocument(max(protocol.WindowBytes, 2*form.FeedStartMax(set)))
	if err != nil {
		return a, err
	}
	doc.Append(func(b []byte) []byte { return form.AppendFeedStart(b, set) })
	rows, next := 0, ""
	if c.in.top > 0 {
		rows, next, err = c.tablePage(doc, set)
		if err != nil {
			return a, err
		}
		if next != "" {
			a.next = []Field{{Name: "X-Ms-Continuation-Nexttablename", Value: odata.EncodeToken(next)}}
		}
	}
	doc.Append(func(b []byte) []byte { return form.AppendFeedEnd(b, rows) })
	a.status, a.contentType, a.document = http.StatusOK, form.ContentType(), doc
	return a, nil
}

// tablePage appends the tables of a page from one snapshot of the catalog. The first one
// always fits: a document's first window holds it.
func (c *call) tablePage(doc *protocol.Document, set *odata.Set) (rows int, next string, err error) {
	form, wanted, names := c.in.codec, c.in.filter, c.in.filter.TableBounds()
	page := catalog.Listing{
		Service: geo.Table, Account: c.r.Account.Name, From: c.in.nextTable,
		Low: names.Low, High: names.High, Bounded: names.Bounded,
	}
	snap, err := ranges.Snapshot(c.ctx, c.reader(), c.Stamp.Route().Catalog())
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	budget := c.newBudget()
	defer budget.End()
	next, err = catalog.Page(c.ctx, snap, page, budget, func(t *catalog.Container) (bool, error) {
		ok, work := wanted.MatchTable(t.Name)
		if _, err := budget.Spend(c.ctx, work); !ok || err != nil {
			return true, err
		}
		if rows == c.in.top || !doc.Grow(form.TableMax(set, t.Name)) && rows > 0 {
			return false, nil
		}
		doc.Append(func(b []byte) []byte { return form.AppendTable(b, set, odata.InFeed(rows), t.Name) })
		rows++
		return true, nil
	})
	return rows, next, err
}
