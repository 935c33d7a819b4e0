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
	// pageBytesMax is where a page of entities ends, by names and values as the size of an
	// entity counts them (protocol/table.md 4.6, 12).
	pageBytesMax = 4 << 20
	// smallBytes is a size of which a page can have as many entities as it may have at all: the
	// exact size of such an entity is not worth looking at its properties.
	smallBytes = pageBytesMax / odata.TopMax
	// documentBytesMax is where it ends by its document, which also has escapes, metadata and
	// the nulls of $select.
	documentBytesMax = 2 * pageBytesMax
	// rowWork is what a row costs before its values are looked at, seekWork what skipping
	// to a row costs, in the unit of services.Budget.
	rowWork  = 16
	seekWork = 64
	// aheadWork bounds the search for a row behind a page that has $top rows: about half a
	// millisecond. Past it the page has a continuation, though perhaps nothing follows.
	aheadWork = 20_000
)

// page is a page of a query under way.
//
// Invariant: paging ends. A page takes or skips one row at least, and its
// continuation is the first key of the plan at or above the row that it did neither with: it
// stops for its budget or for want of room only behind a row.
type page struct {
	account    geo.Account
	table      string
	generation keys.Generation

	codec   codec
	set     *odata.Set
	keys    filter.Keys
	matcher *filter.Matcher // of what keys leave to test
	top     int
	budget  *services.Budget
	doc     *protocol.Document

	rows int
	// size is that of the rows, ahead the work behind the last one that fitted $top.
	size, ahead int
	next        *filter.Key
	// spent: the budget ended with the last row.
	spent bool
	// need is set where the first row did not fit: the bytes to wait for.
	need int
}

// queryEntities is Query Entities as a bounded scan (protocol/table.md 11, 12).
func (c *call) queryEntities() (a answer, err error) {
	plan := c.in.filter.Plan()
	p := &page{
		codec: c.in.codec, set: c.show(c.container.Name), top: c.in.top,
		account: c.r.Account.Name, table: c.in.res.Table, generation: c.container.Generation(),
		// Rows outside of keys are not read, and no continuation names one.
		keys: plan.Keys.Within(c.allowed()), matcher: plan.Rest.Matcher(),
	}
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

// scan fills p from one snapshot of a range. Where the first row does not fit into what the
// answers of all requests may take, it waits for room, holding none and no snapshot, and begins
// again.
func (c *call) scan(p *page) (err error) {
	lower, upper, some := p.span(c.in.next)
	for first := true; first || p.need > 0; first = false {
		if !first {
			p.doc.Close()
		}
		p.doc, err = c.newDocument(max(protocol.WindowBytes, p.need+p.codec.FeedStartMax(p.set)))
		if err != nil {
			return err
		}
		if !some {
			p.begin()
			p.end()
			return nil
		}
		if err := c.fillPage(p, lower, upper); err != nil {
			return err
		}
	}
	return nil
}

// fillPage fills p from a snapshot of now of the range that holds lower: a page ends where that
// range does. The snapshot and the budget end after a panic, too: a budget may hold one of the
// process's slots for scans, which would be lost for good.
func (c *call) fillPage(p *page, lower, upper []byte) (err error) {
	table := c.Stamp.Route()
	id := table.At(lower)
	var border []byte
	if r, ok := table.Range(id); ok && r.Span.End < string(upper) {
		border = []byte(r.Span.End)
		upper = border
	}
	snap, err := ranges.Snapshot(c.ctx, c.reader(), id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p.budget = c.newBudget()
	defer p.budget.End()
	if err := p.fill(c.ctx, snap, lower, upper); err != nil || border == nil {
		return err
	}
	return p.stopAt(border)
}

// newBudget is the budget of a page that begins now. The caller ends it.
func (c *call) newBudget() *services.Budget {
	return c.Scans.Begin(c.ctx, c.r.Account.Name)
}

// bound is the stored key of an entity.
func (p *page) bound(k filter.Key) []byte {
	return tables.Bound(p.account, p.table, p.generation, k.PK, k.RK)
}

// span is the stored keys to scan: those of the plan, from the continuation on. some is false if
// there are none.
func (p *page) span(token odata.Continuation) (lower, upper []byte, some bool) {
	first, some := p.keys.From(filter.Key{PK: token.PK, RK: token.RK})
	if !some || p.top == 0 {
		return nil, nil, false
	}
	_, upper = tables.TableSpan(p.account, p.table, p.generation)
	if end, bounded := p.keys.End(); bounded {
		upper = p.bound(end)
	}
	return p.bound(first), upper, true
}

func (p *page) begin() {
	p.doc.Append(func(b []byte) []byte { return p.codec.AppendFeedStart(b, p.set) })
}

func (p *page) end() {
	p.doc.Append(func(b []byte) []byte { return p.codec.AppendFeedEnd(b, p.rows) })
}

// fill takes rows until the page is full. It walks through the ranges of the plan, and jumps over
// what lies between.
func (p *page) fill(ctx context.Context, r kv.Reader, lower, upper []byte) error {
	p.rows, p.size, p.ahead, p.next, p.spent, p.need = 0, 0, 0, nil, false, 0
	p.begin()
	walk, byValues := p.keys.Walk(), p.keys.IsAll() && p.matcher.ByValues()
	err := tables.Scan(r, lower, upper, func(row *tables.Row) (to []byte, more bool, err error) {
		if byValues && !p.spent && p.rows < p.top {
			if ok, work, err := p.match(row.Values()); err != nil {
				return nil, false, err
			} else if !ok { // Its key does not matter.
				return nil, true, p.spend(ctx, work)
			}
		}
		e, err := row.Entity()
		if err != nil {
			return nil, false, err
		}
		return p.look(ctx, walk, e)
	})
	p.end()
	return err
}

// look takes or drops a row, and returns where the walk over the ranges of the plan goes on.
func (p *page) look(ctx context.Context, walk *filter.Walk, e *tables.Entity) (to []byte, more bool, err error) {
	first, inside, ok := walk.At(e.PK, e.RK)
	switch {
	case !ok:
		return nil, false, nil
	case p.spent:
		p.stop(first)
		return nil, false, nil
	case !inside:
		return p.bound(first), true, p.spend(ctx, seekWork)
	}
	if more, err := p.add(ctx, e); !more || err != nil {
		return nil, false, err
	}
	first, jump, ok := walk.Behind(e.RK)
	if !jump || !ok {
		return nil, ok, nil
	}
	return p.bound(first), true, p.spend(ctx, seekWork)
}

// match reports whether the filter lets a row through, and the work up to now: all of that of a row that is dropped.
func (p *page) match(e *tables.Entity) (ok bool, work int, err error) {
	ok, work, err = p.matcher.Match(e)
	work += rowWork
	if !ok {
		work += services.BytesWork(len(e.Props))
	}
	return ok, work, err
}

func (p *page) spend(ctx context.Context, work int) error {
	more, err := p.budget.Spend(ctx, work)
	p.spent = !more
	return err
}

// stop ends the page before a key.
func (p *page) stop(k filter.Key) { p.next = &k }

// stopAt ends a page that has found all of its range before the border of that.
func (p *page) stopAt(border []byte) error {
	if p.next != nil || p.need > 0 {
		return nil
	}
	pk, rk, err := tables.BorderKey(border)
	if err != nil {
		return err
	}
	if first, some := p.keys.From(filter.Key{PK: pk, RK: rk}); some {
		p.stop(first)
	}
	return nil
}

// add takes one row within the plan into the page, and reports whether there is room for
// more.
func (p *page) add(ctx context.Context, e *tables.Entity) (more bool, err error) {
	ok, work, err := p.match(e)
	if err != nil {
		return false, err
	}
	if !ok {
		if p.rows == p.top {
			if p.ahead += work; p.ahead > aheadWork {
				p.stop(filter.Key{PK: e.PK, RK: e.RK})
				return false, nil
			}
		}
		return true, p.spend(ctx, work)
	}
	size := entity.SizeBound(e.PK, e.RK, e.Props)
	if size > smallBytes {
		size = entity.Size(e.PK, e.RK, e.Props)
	}
	full := p.rows == p.top || p.doc.Len() >= documentBytesMax || p.rows > 0 && p.size+size > pageBytesMax
	if full || !p.room(e) {
		if p.need == 0 {
			p.stop(filter.Key{PK: e.PK, RK: e.RK})
		}
		return false, nil
	}
	p.doc.Append(func(b []byte) []byte {
		b, err = p.codec.AppendEntity(b, p.set, odata.InFeed(p.rows), *e)
		return b
	})
	if err != nil {
		return false, err
	}
	p.rows++
	p.size += size
	list := entity.Read(e.Props)
	return true, p.spend(ctx, work+list.Len()+services.BytesWork(2*len(e.Props)))
}

// room makes room for a row. The first row of a page must be waited for if there is
// no room.
func (p *page) room(e *tables.Entity) bool {
	n := p.codec.EntityMax(p.set, *e)
	if p.doc.Fits(n) {
		return true
	}
	n = p.codec.EntityBound(p.set, *e)
	if p.doc.Grow(n) {
		return true
	}
	if p.rows == 0 {
		p.need = n
	}
	return false
}
