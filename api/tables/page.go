package tables

import (
	"context"
	"errors"
	"net/http"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

const (
	// pageBytesMax is where a page of entities ends (protocol/table.md 12).
	pageBytesMax = 4 << 20
	// rowWork is what a row costs before its values are looked at, seekWork what skipping
	// to a row costs, in the unit of services.Budget.
	rowWork  = 16
	seekWork = 64
)

// page is a page of a query under way.
//
// Invariant: paging ends. A page takes or skips one row at least, and its
// continuation is the first row that it did neither with: it stops for its budget or for
// want of room only behind a row.
type page struct {
	account    geo.Account
	table      string
	generation keys.Generation

	codec   codec
	set     *odata.Set
	matcher *filter.Matcher // of what the bounds leave to test
	bounds  filter.KeyRange
	top     int
	budget  *services.Budget
	doc     *protocol.Document

	rows int
	next *tables.Entity
	// spent: the budget ended with the last row.
	spent bool
	// need is set where the first row did not fit: the bytes to wait for.
	need int
}

// queryEntities is Query Entities as a bounded scan (protocol/table.md 11, 12).
func (c *call) queryEntities() (a answer, err error) {
	p := &page{
		codec: c.in.codec, set: c.show(c.container.Name), top: c.in.top,
		account: c.r.Account.Name, table: c.in.res.Table, generation: c.container.Generation(),
	}
	bounds, residual := c.in.filter.Bounds()
	p.bounds, p.matcher = bounds, residual.Matcher()
	if err := c.scan(p); err != nil {
		return a, err
	}
	if p.next != nil {
		a.next = []Field{
			{Name: "X-Ms-Continuation-Nextpartitionkey", Value: odata.EncodeToken(p.next.PK)},
			{Name: "X-Ms-Continuation-Nextrowkey", Value: odata.EncodeToken(p.next.RK)},
		}
	}
	a.status, a.contentType, a.document = http.StatusOK, p.codec.ContentType(), p.doc
	return a, nil
}

// scan fills p from one snapshot of the table's range. Where the first row does not fit
// into what the answers of all requests may take, it waits for room, holding none and no
// snapshot, and begins again.
func (c *call) scan(p *page) (err error) {
	lower, upper := p.span(c.in.next)
	for first := true; first || p.need > 0; first = false {
		if !first {
			p.doc.Close()
		}
		p.doc, err = c.newDocument(max(protocol.WindowBytes, p.need+p.codec.FeedStartMax(p.set)))
		if err != nil {
			return err
		}
		if err := c.fillPage(p, lower, upper); err != nil {
			return err
		}
	}
	return nil
}

// fillPage fills p from a snapshot of now. The snapshot and the budget end after a panic, too:
// a budget may hold one of the process's slots for scans, which would be lost for good.
func (c *call) fillPage(p *page, lower, upper []byte) (err error) {
	snap, err := ranges.Snapshot(c.ctx, c.reader(), c.Stamp.Route().At(lower))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p.budget = c.newBudget()
	defer p.budget.End()
	return p.fill(c.ctx, snap, lower, upper)
}

// newBudget is the budget of a page that begins now. The caller ends it.
func (c *call) newBudget() *services.Budget {
	return c.Scans.Begin(c.ctx, c.r.Account.Name)
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
func (p *page) fill(ctx context.Context, r kv.Reader, lower, upper []byte) error {
	p.rows, p.next, p.spent, p.need = 0, nil, false, 0
	p.doc.Append(func(b []byte) []byte { return p.codec.AppendFeedStart(b, p.set) })
	var err error
	if !p.bounds.Empty() && p.top > 0 {
		err = tables.Scan(r, lower, upper, func(e tables.Entity) ([]byte, bool, error) {
			if p.spent {
				p.stop(e)
				return nil, false, nil
			}
			if p.bounds.Contains(e.PK, e.RK) {
				more, err := p.add(ctx, e)
				return nil, more, err
			}
			err := p.spend(ctx, seekWork)
			return p.behind(e), true, err
		})
	}
	p.doc.Append(p.codec.AppendFeedEnd)
	return err
}

func (p *page) spend(ctx context.Context, work int) error {
	more, err := p.budget.Spend(ctx, work)
	p.spent = !more
	return err
}

// stop ends the page before a row.
func (p *page) stop(e tables.Entity) { p.next = &tables.Entity{PK: e.PK, RK: e.RK} }

// add takes one row within the bounds into the page, and reports whether there is room for
// more.
func (p *page) add(ctx context.Context, e tables.Entity) (more bool, err error) {
	ok, work, err := p.matcher.Match(e)
	if err != nil {
		return false, err
	}
	if !ok {
		return true, p.spend(ctx, rowWork+work+services.BytesWork(len(e.Props)))
	}
	if p.rows == p.top || p.doc.Len() >= pageBytesMax || !p.room(e) {
		if p.need == 0 {
			p.stop(e)
		}
		return false, nil
	}
	p.doc.Append(func(b []byte) []byte {
		b, err = p.codec.AppendEntity(b, p.set, odata.InFeed(p.rows), e)
		return b
	})
	if err != nil {
		return false, err
	}
	p.rows++
	list := entity.Read(e.Props)
	return true, p.spend(ctx, rowWork+work+list.Len()+services.BytesWork(2*len(e.Props)))
}

// room makes room for a row. The first row of a page must be waited for if there is
// no room.
func (p *page) room(e tables.Entity) bool {
	n := p.codec.EntityMax(p.set, e)
	if p.doc.Fits(n) {
		return true
	}
	n = p.codec.EntityBound(p.set, e)
	if p.doc.Grow(n) {
		return true
	}
	if p.rows == 0 {
		p.need = n
	}
	return false
}
