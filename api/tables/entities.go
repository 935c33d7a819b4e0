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
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

type kvReader = kv.Reader

// insert is Insert Entity (spec/table.md 9.5).
func (c *call) insert() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	in, err := odata.DecodeEntity(body, odata.Insert)
	if err != nil {
		return err
	}
	if err := entity.CheckSize(in.PK, in.RK, in.Props); err != nil {
		return err
	}
	t, err := c.table()
	if err != nil {
		return err
	}
	w := &tables.Write{
		Op: tables.Insert, Account: c.r.Account.Name, Table: c.res.Table, Generation: t.Generation(),
		PK: in.PK, RK: in.RK, Props: in.Props,
	}
	if err := c.Writer.Write(c.ctx, w); err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{protocol.TableETag(w.Timestamp)}
	location := c.r.Base + string(odata.AppendEntityPath(nil, c.res.Table, in.PK, in.RK))
	return c.created(location, func(b []byte) ([]byte, error) {
		return c.answer().AppendEntity(b, in.PK, in.RK, w.Timestamp, in.Props)
	})
}

// update is Update, Merge and the upserts: verb is PUT or MERGE (spec/table.md 9.7).
func (c *call) update(verb string) error {
	match, err := protocol.ParseTableMatch(c.r.HTTP.Method, c.r.HTTP.Header)
	if err != nil {
		return err
	}
	if !match.Sent && c.r.Version < protocol.Version20110818 {
		return storageerr.MissingRequiredHeader.With("HeaderName", "If-Match")
	}
	if err := c.checkURLKeys(); err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	in, err := odata.DecodeEntity(body, odata.Update)
	if err != nil {
		return err
	}
	if err := entity.CheckSize(c.res.PK, c.res.RK, in.Props); err != nil {
		return err
	}
	op := map[bool]map[string]tables.Op{
		true:  {http.MethodPut: tables.Update, methodMerge: tables.Merge},
		false: {http.MethodPut: tables.InsertOrReplace, methodMerge: tables.InsertOrMerge},
	}[match.Sent][verb]
	w, err := c.write(op, match, in.Props)
	if err != nil {
		return err
	}
	c.w.Header()["ETag"] = []string{protocol.TableETag(w.Timestamp)}
	c.noContent()
	return nil
}

// deleteEntity is Delete Entity (spec/table.md 9.8).
func (c *call) deleteEntity() error {
	match, err := protocol.ParseTableMatch(c.r.HTTP.Method, c.r.HTTP.Header)
	if err != nil {
		return err
	}
	if !match.Sent {
		return storageerr.MissingRequiredHeader.With("HeaderName", "If-Match")
	}
	if err := c.checkURLKeys(); err != nil {
		return err
	}
	if _, err := c.write(tables.Delete, match, nil); err != nil {
		return err
	}
	c.noContent()
	return nil
}

func (c *call) write(op tables.Op, match protocol.TableMatch, props []byte) (*tables.Write, error) {
	t, err := c.table()
	if err != nil {
		return nil, err
	}
	w := &tables.Write{
		Op: op, Account: c.r.Account.Name, Table: c.res.Table, Generation: t.Generation(),
		PK: c.res.PK, RK: c.res.RK, Match: tables.Match{Any: match.Any, Tag: match.Timestamp}, Props: props,
	}
	return w, c.Writer.Write(c.ctx, w)
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
	lower, upper := tables.TableSpan(c.r.Account.Name, c.res.Table, t.Generation())
	bound := func(pk, rk string) []byte {
		return tables.Bound(c.r.Account.Name, c.res.Table, t.Generation(), pk, rk)
	}
	pk, rk := p.bounds.Start()
	if token.HasPK && (entity.Compare(token.PK, pk) > 0 || token.PK == pk && entity.Compare(token.RK, rk) > 0) {
		pk, rk = token.PK, token.RK
	}
	lower = bound(pk, rk)
	if epk, erk, bounded := p.bounds.End(); bounded {
		upper = bound(epk, erk)
	}
	return c.Stamp.Read(ctx, geo.FirstRange(geo.Table), func(s ranges.State) error {
		p.rows, p.examined, p.next = 0, 0, nil
		p.doc = answer.AppendFeedStart(make([]byte, 0, 4096))
		if p.bounds.Empty() {
			p.doc = answer.AppendEnd(p.doc)
			return nil
		}
		snap := s.Snapshot()
		err := tables.Scan(snap, lower, upper, func(e tables.Entity) (bool, error) { return p.add(answer, e) })
		p.doc = answer.AppendEnd(p.doc)
		return errors.Join(err, snap.Close())
	})
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
