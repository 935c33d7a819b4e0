package sim

import (
	"context"
	"time"

	"antipode/directory"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// A node compares the gates of the ranges that it leads and that were recovered with a loss: see
// location.Location.compareGates.

// comparePause is the least time between two attempts.
const comparePause = 30 * time.Millisecond

// compareGates begins what is due.
func (m *member) compareGates() {
	if m.compares || m.n == nil || m.stands() || m.killed != nil {
		return
	}
	for _, svc := range m.l.s.used {
		id := geo.FirstRange(svc)
		if !m.leads(id) || !m.n.Range(id).Machine.Uncompared() {
			continue
		}
		m.compares = true
		m.begin(func() {
			s := m.l.s
			err := directory.NewDirectory(comparer{&desk{m: m}}, m.l.far.name).Rejoiner().Compare(context.Background(), m.n.Range(id))
			if s.task.gone {
				return
			}
			s.event("%s node %d: compared the gates of r%d: %v", m.l.name, m.id, id, err)
			_ = s.task.rest(comparePause)
			m.compares = s.task.gone
		})
		return
	}
}

// comparer is the stamp as such a node sees it.
type comparer struct{ *desk }

// Read implements directory.Stamp: of the catalog, wherever that leads.
func (c comparer) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	t := c.m.l.s.task
	for range leaderTries {
		if err := (catalogReader{c.m.l}).Read(ctx, id, f); err == nil {
			return nil
		}
		if err := t.rest(leaderPause); err != nil {
			return err
		}
	}
	return kv.ErrBusy
}

// checkCompared: a range that was recovered takes no change before its gates were compared (R7).
func (h *history) checkCompared(r *change.Record) {
	if r.Incarnation != 0 && r.Incarnation == h.incarnation && h.m.compared != h.incarnation {
		h.fail(ErrUncompared, "#%d of %s in epoch %s", r.Seq, r.Account, r.Epoch)
	}
}

// lostGate returns the gate of an account in the catalog here, and whether the range has a former one.
func (h *history) lostGate(a geo.Account) (known change.Gate, lost bool) {
	known = h.l.history[geo.FirstRange(geo.Catalog)].m.gates[a]
	return known, h.m.gates[a].Epoch.Compare(known.Epoch) < 0
}

func (h *history) countLostGates() {
	for _, a := range h.s.accounts {
		switch _, lost := h.lostGate(a.name); {
		case lost && a.home == h.l:
			h.s.counts.GateLost++
		case lost:
			h.s.counts.CopyGateLost++
		}
	}
}

// checkGates: the comparison leaves no gate behind that of the catalog, but where an operation is under way, whose next
// steps set it.
func (h *history) checkGates() {
	for _, a := range h.s.accounts {
		rec := a.home.record(a.name)
		if known, lost := h.lostGate(a.name); lost && rec != nil && rec.Operation == nil {
			h.fail(ErrGateLost, "%s has %s, the catalog %s", a.name, h.m.gates[a.name].Epoch, known.Epoch)
		}
	}
}
