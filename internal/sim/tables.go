package sim

import (
	"context"
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// table is a table of an account, from its creation's effect on.
type table struct {
	account    *account
	name       string
	generation keys.Generation
	// deletion and closing are the writes that delete it (R8), -1 while there are none.
	deletion, closing int
	// deleted says that its deletion took effect in the catalog, closed that its
	// range committed that it takes no more changes.
	deleted, closed bool
}

// newTable makes a table whose name tells its operation.
func (s *Sim) newTable(a *account) *op {
	return s.newOp(a, &catalog.Create{Service: geo.Table, Account: a.name, Name: fmt.Sprintf("t%d", len(s.ops)), Epoch: 1})
}

// deleteTable deletes a table as the front end does: first in the catalog, then in
// the range. A client that fails half way leaves it at that.
func (s *Sim) deleteTable(a *account, done func()) {
	t := a.tables[s.rng.IntN(len(a.tables))]
	if t.deletion >= 0 || len(a.tables) == 1 {
		done()
		return
	}
	o := s.newOp(a, &catalog.Delete{Service: geo.Table, Account: a.name, Name: t.name})
	t.deletion = o.id
	s.submit(o, func() {
		if o.outcome == acked {
			_ = a.home.primary.CloseGeneration(context.Background(), geo.Table, a.name, t.name, t.generation) // errTaken: see intake.
			closing := s.takeOp(a, geo.FirstRange(geo.Table))
			t.closing = closing.id
			s.submit(closing, done)
			return
		}
		done()
	})
}

// table finds a table by its generation, nil where there is none.
func (s *Sim) table(a geo.Account, g keys.Generation) *table {
	for _, t := range s.account(a).tables {
		if t.generation == g {
			return t
		}
	}
	return nil
}

// tookTable notes that a creation or a deletion took effect.
func (h *history) tookTable(p keys.Partition, r *change.Record, index uint64) {
	c, err := catalog.ParseContainer(r.Ops[0].Value)
	if err != nil {
		h.s.fail(err)
		return
	}
	if c.Deleted != 0 {
		t := h.s.table(p.Account, c.Generation())
		t.deleted = true
		h.tookOp(t.deletion, string(r.Partition), index)
		return
	}
	var id int
	if _, err := fmt.Sscanf(p.Object, "table/t%d", &id); err != nil {
		h.s.fail(err)
		return
	}
	h.tookOp(id, string(r.Partition), index)
	a := h.s.ops[id].account
	a.tables = append(a.tables, &table{account: a, name: c.Name, generation: c.Generation(), deletion: -1, closing: -1})
}

// tookClosing notes that a generation takes no more changes from here on.
func (h *history) tookClosing(key []byte, index uint64) {
	for _, a := range h.s.accounts {
		for _, t := range a.tables {
			if string(keys.ClosedGeneration(h.id, geo.Table, a.name, t.name, t.generation)) == string(key) {
				t.closed = true
				h.tookOp(t.closing, string(key), index)
			}
		}
	}
}

// checkOpen: no change of a generation follows its closing in the log (R8).
func (h *history) checkOpen(r *change.Record) {
	if p, _, err := keys.ParsePartition(r.Partition); err == nil && h.svc == geo.Table {
		if t := h.s.table(p.Account, p.Generation); t == nil || t.closed {
			h.fail(ErrDeleted, "%s at %d", p.Container, r.CommitTime)
		}
	}
}

// checkSkipped: only the records of a generation that the catalog here has deleted
// may be skipped (R14).
func (h *history) checkSkipped(r *change.Record) {
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		h.s.fail(err)
		return
	}
	rows := h.l.history[geo.FirstRange(geo.Catalog)].m.parts[string(catalog.ContainerPartition(p.Service, p.Account, p.Container).Append(nil))]
	c, err := catalog.ParseContainer([]byte(rows[""]))
	if err != nil || c.Deleted == 0 {
		h.fail(ErrSkipped, "%s #%d of %s", r.Stream(), r.Seq, p.Container)
		return
	}
	h.s.counts.Skipped++
}

// living drops the rows of deleted tables: the other location may have skipped some.
func (s *Sim) living(rows map[string]string) map[string]string {
	for k := range rows {
		p, _, err := keys.ParsePartition([]byte(k))
		if err != nil {
			s.fail(err)
		}
		if strings.HasPrefix(p.Container, "t") && s.table(p.Account, p.Generation).deleted {
			delete(rows, k)
		}
	}
	return rows
}
