package tables

import (
	"errors"
	"net/http"

	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/ranges"
)

// insert is Insert Entity (protocol/table.md 9.5).
func (c *call) insert() error {
	body, form, err := c.body()
	if err != nil {
		return err
	}
	w := &tables.Write{Op: tables.Insert}
	if err := decode(form, w, body); err != nil {
		return err
	}
	if err := c.commit(w); err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{wire.TableETag(w.Timestamp)}
	return c.created(c.location(w), func(b []byte) ([]byte, error) { return c.appendWritten(b, c.codec, w) })
}

// decode reads the body of every write but Delete into w, whose keys are known unless it
// is an Insert.
func decode(form codec, w *tables.Write, body []byte) error {
	mode := odata.Update
	if w.Op == tables.Insert {
		mode = odata.Insert
	}
	in, err := form.DecodeEntity(body, mode)
	if err != nil {
		return err
	}
	if w.Op == tables.Insert {
		w.PK, w.RK = in.PK, in.RK
	}
	w.Props = in.Props
	return entity.CheckSize(w.PK, w.RK, w.Props)
}

// location is the Location of an inserted entity.
func (c *call) location(w *tables.Write) string {
	return c.r.Base + string(odata.AppendEntityPath(nil, w.Table, w.PK, w.RK))
}

// appendWritten appends the document of an inserted entity.
func (c *call) appendWritten(b []byte, form codec, w *tables.Write) ([]byte, error) {
	return form.AppendEntity(b, c.show(w.Table), tables.Entity{PK: w.PK, RK: w.RK, Timestamp: w.Timestamp, Props: w.Props})
}

// update is Update, Merge and the upserts: verb is PUT or MERGE (protocol/table.md 9.7).
func (c *call) update(verb string) error {
	w, err := c.conditional(verb, c.r.HTTP.Header, false)
	if err != nil {
		return err
	}
	body, form, err := c.body()
	if err != nil {
		return err
	}
	if err := decode(form, w, body); err != nil {
		return err
	}
	if err := c.commit(w); err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{wire.TableETag(w.Timestamp)}
	c.noContent()
	return nil
}

// deleteEntity is Delete Entity (protocol/table.md 9.8).
func (c *call) deleteEntity() error {
	w, err := c.conditional(http.MethodDelete, c.r.HTTP.Header, false)
	if err != nil {
		return err
	}
	if err := c.commit(w); err != nil {
		return err
	}
	c.noContent()
	return nil
}

// conditional makes the write that a verb on an entity is: by its If-Match an update or
// an upsert (protocol/table.md 9.7, 9.8). Where there must be an If-Match and is none, an
// operation of a batch means any entity; a request is refused.
func (c *call) conditional(verb string, h http.Header, inBatch bool) (*tables.Write, error) {
	match, err := protocol.ParseTableMatch(verb, h)
	if err != nil {
		return nil, err
	}
	if !match.Sent && (verb == http.MethodDelete || c.r.Version < protocol.Version20110818) {
		if !inBatch {
			return nil, storageerr.MissingRequiredHeader.With("HeaderName", "If-Match")
		}
		match.Sent, match.Any = true, true
	}
	w := &tables.Write{PK: c.res.PK, RK: c.res.RK, Match: tables.Match{Any: match.Any, Tag: match.Timestamp}}
	switch {
	case verb == http.MethodDelete:
		w.Op = tables.Delete
	case verb == http.MethodPut && match.Sent:
		w.Op = tables.Update
	case verb == http.MethodPut:
		w.Op = tables.InsertOrReplace
	case match.Sent:
		w.Op = tables.Merge
	default:
		w.Op = tables.InsertOrMerge
	}
	return w, c.checkURLKeys()
}

// commit commits a write to the addressed table.
func (c *call) commit(w *tables.Write) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	w.Account, w.Table, w.Generation = c.r.Account.Name, c.res.Table, t.Generation()
	c.odataHeaders()
	return c.Writer.Write(c.ctx, w)
}

func (c *call) checkURLKeys() error {
	return errors.Join(entity.ValidateURLKey(c.res.PK), entity.ValidateURLKey(c.res.RK))
}

// getEntity is the point GET (protocol/table.md 9.6).
func (c *call) getEntity() error {
	set := c.show(c.res.Table)
	if text, sent := c.r.Query.Lookup("$select"); sent {
		var err error
		if set.Select, err = odata.ParseSelect(text); err != nil {
			return err
		}
	}
	t, err := c.table()
	if err != nil {
		return err
	}
	c.odataHeaders()
	var e tables.Entity
	err = c.Stamp.Read(c.ctx, geo.FirstRange(geo.Table), func(s ranges.State) error {
		var err error
		e, err = tables.Get(s, c.r.Account.Name, c.res.Table, t.Generation(), c.res.PK, c.res.RK)
		return err
	})
	if err != nil {
		return err
	}
	tag := []string{wire.TableETag(e.Timestamp)}
	if protocol.ParseTableNoneMatch(c.r.HTTP.Header).Names(e.Timestamp) {
		c.w.Header()["ETag"] = tag
		return storageerr.NotModified
	}
	set.Table = t.Name
	doc, err := c.newDocument(c.codec.EntityBound(set, e), "")
	if err != nil {
		return err
	}
	doc.Append(func(b []byte) []byte {
		b, err = c.codec.AppendEntity(b, set, e)
		return b
	})
	if err != nil {
		return err
	}
	c.w.Header()["ETag"] = tag
	c.writeDocument(doc)
	return nil
}
