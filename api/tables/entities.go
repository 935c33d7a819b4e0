package tables

import (
	"net/http"

	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/ranges"
)

// decodeWrite decodes a write of one entity.
func (c *call) decodeWrite(body []byte) (err error) {
	if c.write, err = c.in.write(c.r.Account.Name, body); err != nil {
		return err
	}
	return c.reached(c.write.PK, c.write.RK)
}

// write makes the write that the operation is, by verb and If-Match (protocol/table.md 9.5 to
// 9.8). A Delete has no body.
func (in *input) write(account geo.Account, body []byte) (*tables.Write, error) {
	w := &tables.Write{
		Op: in.writeOp(), Account: account, Table: in.res.Table, PK: in.res.PK, RK: in.res.RK,
		Match: tables.Match{Any: in.match.Any, Tag: in.match.Timestamp},
	}
	if in.body == nil {
		return w, nil
	}
	mode := odata.Update
	if w.Op == tables.Insert {
		mode = odata.Insert
	}
	e, err := in.body.DecodeEntity(body, mode)
	if err != nil {
		return nil, err
	}
	if w.Op == tables.Insert {
		w.PK, w.RK = e.PK, e.RK
	}
	w.Props = e.Props
	return w, entity.CheckSize(w.PK, w.RK, w.Props)
}

func (in *input) writeOp() tables.Op {
	switch {
	case in.verb == http.MethodPost:
		return tables.Insert
	case in.verb == http.MethodDelete:
		return tables.Delete
	case in.verb == http.MethodPut && in.match.Sent:
		return tables.Update
	case in.verb == http.MethodPut:
		return tables.InsertOrReplace
	case in.match.Sent:
		return tables.Merge
	}
	return tables.InsertOrMerge
}

// writeEntity is Insert, Update, Merge, the upserts and Delete.
func (c *call) writeEntity() (answer, error) {
	c.write.Generation = c.container.Generation()
	if err := c.Writer.Write(c.ctx, c.write); err != nil {
		return answer{}, err
	}
	return c.written(c.write, c.in.codec)
}

// written is the answer to a write that is committed. The entity that an Insert made is
// answered by form; nil answers none.
func (c *call) written(w *tables.Write, form codec) (a answer, err error) {
	a.status = http.StatusNoContent
	if w.Op != tables.Delete {
		a.etag = wire.TableETag(w.Timestamp)
	}
	if w.Op != tables.Insert {
		return a, nil
	}
	a.location = c.r.Base + string(odata.AppendEntityPath(nil, w.Table, w.PK, w.RK))
	if form == nil {
		return a, nil
	}
	a.status, a.contentType = http.StatusCreated, form.ContentType()
	e := tables.Entity{PK: w.PK, RK: w.RK, Timestamp: w.Timestamp, Props: w.Props}
	a.body, err = form.AppendEntity(make([]byte, 0, createdBytes), c.show(w.Table), odata.Alone, e)
	return a, err
}

// createdBytes is what the document of something created usually fits in.
const createdBytes = 1024

// getEntity is the point GET (protocol/table.md 9.6).
func (c *call) getEntity() (a answer, err error) {
	if !c.reaches(c.in.res.PK, c.in.res.RK) {
		return a, storageerr.ResourceNotFound
	}
	var e tables.Entity
	p := tables.Partition(c.r.Account.Name, c.in.res.Table, c.container.Generation(), c.in.res.PK)
	err = c.reader().Read(c.ctx, c.Stamp.Route().Of(p), func(s ranges.State) error {
		var err error
		e, err = tables.Get(s, p, c.in.res.RK)
		return err
	})
	if err != nil {
		return a, err
	}
	a.etag = wire.TableETag(e.Timestamp)
	if c.in.noneMatch.Names(e.Timestamp) {
		return a, storageerr.NotModified
	}
	set := c.show(c.container.Name)
	if a.document, err = c.newDocument(c.in.codec.EntityBound(set, e)); err != nil {
		return answer{}, err
	}
	a.document.Append(func(b []byte) []byte {
		b, err = c.in.codec.AppendEntity(b, set, odata.Alone, e)
		return b
	})
	if err != nil {
		return answer{}, err
	}
	a.status, a.contentType = http.StatusOK, c.in.codec.ContentType()
	return a, nil
}
