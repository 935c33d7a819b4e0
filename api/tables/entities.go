package tables

import (
	"context"
	"errors"
	"net/http"

	"antipode/api/odata"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// insert is Insert Entity (spec/table.md 9.5).
func (c *call) insert() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	w := &tables.Write{Op: tables.Insert}
	if err := decode(w, body); err != nil {
		return err
	}
	if err := c.commit(w); err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{protocol.TableETag(w.Timestamp)}
	return c.created(c.location(w), func(b []byte) ([]byte, error) { return c.appendWritten(b, w) })
}

// decode reads the body of every write but Delete into w, whose keys are known unless it
// is an Insert.
func decode(w *tables.Write, body []byte) error {
	mode := odata.Update
	if w.Op == tables.Insert {
		mode = odata.Insert
	}
	in, err := odata.DecodeEntity(body, mode)
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
func (c *call) appendWritten(b []byte, w *tables.Write) ([]byte, error) {
	return c.answer().AppendEntity(b, w.PK, w.RK, w.Timestamp, w.Props)
}

// update is Update, Merge and the upserts: verb is PUT or MERGE (spec/table.md 9.7).
func (c *call) update(verb string) error {
	w, err := c.conditional(verb, c.r.HTTP.Header, false)
	if err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	if err := decode(w, body); err != nil {
		return err
	}
	if err := c.commit(w); err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{protocol.TableETag(w.Timestamp)}
	c.noContent()
	return nil
}

// deleteEntity is Delete Entity (spec/table.md 9.8).
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
// an upsert (spec/table.md 9.7, 9.8). Where there must be an If-Match and is none, an
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
	return c.Writer.Write(c.ctx, w)
}

func (c *call) checkURLKeys() error {
	return errors.Join(entity.ValidateURLKey(c.res.PK), entity.ValidateURLKey(c.res.RK))
}

// getEntity is the point GET (spec/table.md 9.6).
func (c *call) getEntity() error {
	answer := c.answer()
	if text, sent := c.r.Query.Lookup("$select"); sent {
		var err error
		if answer.Select, err = odata.ParseSelect(text); err != nil {
			return err
		}
	}
	t, err := c.table()
	if err != nil {
		return err
	}
	var e tables.Entity
	err = c.Stamp.Read(c.ctx, geo.FirstRange(geo.Table), func(s ranges.State) error {
		var err error
		e, err = tables.Get(s, c.r.Account.Name, c.res.Table, t.Generation(), c.res.PK, c.res.RK)
		return err
	})
	if err != nil {
		return err
	}
	tag := protocol.TableETag(e.Timestamp)
	if none := c.r.Header("If-None-Match"); none == "*" || none == tag {
		return storageerr.NotModified
	}
	answer.Table = t.Name
	doc, err := answer.AppendEntity(make([]byte, 0, 1024+len(e.Props)), e.PK, e.RK, e.Timestamp, e.Props)
	if err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{tag}
	c.writeJSON(http.StatusOK, doc)
	return nil
}

// pageBytesMax is where a page of entities ends (spec/table.md 12).
const pageBytesMax = 4 << 20

// page is a page of a query under way.
type page struct {
	account    geo.Account
	table      string
	generation keys.Generation

	filter   *odata.Filter // what the bounds leave to test; nil passes all
	bounds   odata.KeyRange
	top      int
	rows     int
	doc      []byte
	next     *tables.Entity
	examined int
}

// examinedMax bounds the rows one request looks at; a page may be empty and carry a
// continuation.
const examinedMax = 50_000

// queryEntities is Query Entities as a bounded scan (spec/table.md 11, 12).
func (c *call) queryEntities() error {
	top, err := c.top()
	if err != nil {
		return err
	}
	filter, err := odata.ParseFilter(c.r.Query.Get("$filter"))
	if err != nil {
		return err
	}
	answer := c.answer()
	if text, sent := c.r.Query.Lookup("$select"); sent {
		if answer.Select, err = odata.ParseSelect(text); err != nil {
			return err
		}
	}
	token, err := odata.ParseContinuation(c.r.Query.Get("nextpartitionkey"), c.r.Query.Get("nextrowkey"))
	if err != nil {
		return err
	}
	t, err := c.table()
	if err != nil {
		return err
	}
	answer.Table = t.Name
	p := &page{top: top}
	p.bounds, p.filter = filter.Bounds()
	if err := c.scan(c.ctx, t, answer, p, token); err != nil {
		return err
	}
	if p.next != nil {
		h := c.w.Header()
		h["X-Ms-Continuation-Nextpartitionkey"] = []string{odata.EncodeToken(p.next.PK)}
		h["X-Ms-Continuation-Nextrowkey"] = []string{odata.EncodeToken(p.next.RK)}
	}
	c.writeJSON(http.StatusOK, p.doc)
	return nil
}

// scan fills p from one snapshot of the table's range.
func (c *call) scan(ctx context.Context, t *catalog.Container, answer *odata.Answer, p *page, token odata.Continuation) error {
	p.account, p.table, p.generation = c.r.Account.Name, c.res.Table, t.Generation()
	lower, upper := p.span(token)
	snap, err := c.snapshot(ctx, geo.Table)
	if err != nil {
		return err
	}
	return errors.Join(p.fill(snap, answer, lower, upper), snap.Close())
}

// snapshot is a range's state of one moment, which the caller closes. Only taking it is
// done under the lease (R5): what is read of it later was true then, and a scan that
// takes longer than a lease would be begun again for ever.
func (c *call) snapshot(ctx context.Context, s geo.Service) (snapshot, error) {
	var snap snapshot
	err := c.Stamp.Read(ctx, geo.FirstRange(s), func(state ranges.State) error {
		old := snap
		snap = state.Snapshot()
		if old != nil { // The lease had run out: this is a later moment.
			return old.Close()
		}
		return nil
	})
	if err != nil && snap != nil {
		err = errors.Join(err, snap.Close())
	}
	return snap, err
}

// snapshot is what ranges.State.Snapshot returns.
type snapshot interface {
	kv.Reader
	Close() error
}

// span is the keys to scan: those within the bounds of the filter, from the
// continuation on.
func (p *page) span(token odata.Continuation) (lower, upper []byte) {
	_, upper = tables.TableSpan(p.account, p.table, p.generation)
	pk, rk := p.bounds.Start()
	if token.HasPK && (entity.Compare(token.PK, pk) > 0 || token.PK == pk && entity.Compare(token.RK, rk) > 0) {
		pk, rk = token.PK, token.RK
	}
	lower = tables.Bound(p.account, p.table, p.generation, pk, rk)
	if pk, rk, bounded := p.bounds.End(); bounded {
		upper = tables.Bound(p.account, p.table, p.generation, pk, rk)
	}
	return lower, upper
}

// behind is the key to go on at from a row outside of the bounds: the first row of its
// partition within them, or the next partition.
func (p *page) behind(e tables.Entity) []byte {
	if entity.Compare(e.RK, p.bounds.RK.Low) < 0 {
		return tables.Bound(p.account, p.table, p.generation, e.PK, p.bounds.RK.Low)
	}
	return tables.BoundAfterPartition(p.account, p.table, p.generation, e.PK)
}

// fill takes rows until the page is full.
func (p *page) fill(r kv.Reader, answer *odata.Answer, lower, upper []byte) error {
	p.rows, p.next = 0, nil
	p.doc = answer.AppendFeedStart(make([]byte, 0, 4096))
	var err error
	if !p.bounds.Empty() {
		err = tables.Scan(r, lower, upper, func(e tables.Entity) ([]byte, bool, error) {
			more, err := p.add(answer, e)
			if more && err == nil && !p.bounds.Contains(e.PK, e.RK) {
				return p.behind(e), true, nil
			}
			return nil, more, err
		})
	}
	p.doc = answer.AppendEnd(p.doc)
	return err
}

// add takes one row into the page, and reports whether there is room for more.
func (p *page) add(answer *odata.Answer, e tables.Entity) (bool, error) {
	if p.examined++; p.examined > examinedMax {
		p.next = &tables.Entity{PK: e.PK, RK: e.RK}
		return false, nil
	}
	if !p.bounds.Contains(e.PK, e.RK) {
		return true, nil
	}
	if p.filter != nil {
		if ok, err := p.filter.Match(e.PK, e.RK, e.Timestamp, e.Props); err != nil || !ok {
			return err == nil, err
		}
	}
	if p.rows == p.top || len(p.doc) >= pageBytesMax {
		if p.top > 0 {
			p.next = &tables.Entity{PK: e.PK, RK: e.RK}
		}
		return false, nil
	}
	p.rows++
	var err error
	p.doc, err = answer.AppendFeedEntity(p.doc, e.PK, e.RK, e.Timestamp, e.Props)
	return err == nil, err
}
