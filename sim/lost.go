package sim

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// What a former primary keeps of the changes that the present one does not have (R22), compared with what the clients
// know: each change that is reported is lost, one that was surely answered was acknowledged, and once a range claims that
// these are all, every write that is lost is among them, whatever its client knows.

// keptAside reports whether rows are of no account: a location keeps them for its operators.
func keptAside(a geo.Account) bool { return a == keys.LostAndFound || a == keys.LostChanges }

// tookAside looks at a record of such rows.
func (h *history) tookAside(p keys.Partition, r *change.Record) {
	a := h.s.account(geo.Account(p.Container))
	if p.Account != keys.LostChanges || a == nil {
		return
	}
	for _, op := range r.Ops {
		if op.Delete {
			continue
		}
		if p.Object == "" {
			h.checkClaim(a, op.Value)
		} else {
			h.checkReported(p.Object, op)
		}
	}
}

// checkReported: what is reported as lost was committed under that number, and is lost.
func (h *history) checkReported(stream string, op change.Op) {
	n, _, err := keys.CutUint64(op.Row)
	lost, failed := change.ParseLost(op.Value)
	if err != nil || failed != nil {
		h.fail(ErrReport, "%s: %q: %v, %v", stream, op.Row, err, failed)
		return
	}
	for st, list := range h.sent {
		if st.String() != stream {
			continue
		}
		if n == 0 || n > uint64(len(list)) || list[n-1].time != lost.At {
			h.fail(ErrReport, "%s #%d at %d: no such change was committed", stream, n, lost.At)
			return
		}
		h.s.counts.LostReported++
		h.checkLost(list[n-1], lost.Surely)
	}
}

// checkLost: the write of a record that is reported is lost.
func (h *history) checkLost(of sent, surely bool) {
	r, err := change.ParseRecord(of.bytes)
	if err != nil {
		h.s.fail(err)
		return
	}
	for _, op := range r.Ops {
		if string(op.Row) != lastRowOf(h.svc) || h.svc == geo.Catalog {
			continue
		}
		id, _, err := parseLast(string(op.Value))
		if err != nil {
			h.s.fail(err)
			return
		}
		p, _, err := keys.ParsePartition(r.Partition)
		o := h.s.ops[id]
		switch {
		case err != nil:
			h.s.fail(err)
		case !o.lost && o.at == r.CommitTime && !h.s.container(p).deleted:
			h.fail(ErrReport, "write %d is reported as lost, and is not", id)
		case o.at == r.CommitTime && surely && o.outcome != acked:
			h.fail(ErrReport, "write %d is reported as surely answered, and is not", id)
		}
		o.reported = true
	}
}

// checkClaim: where a range claims that it has reported all that is lost, that is so.
func (h *history) checkClaim(a *account, value []byte) {
	claim, err := change.ParseLostClaim(value)
	if err != nil {
		h.fail(ErrReport, "%s: %v", a.name, err)
		return
	}
	h.s.event("%s r%d: lost changes of %s: %d, incomplete %t", h.l.name, h.id, a.name, claim.Changes, claim.Incomplete)
	if claim.Rewound {
		h.s.counts.CatalogRewound++
	}
	if len(claim.Swept) > 0 {
		h.s.counts.SweptAgain++
	}
	if claim.Incomplete {
		h.s.counts.LostIncomplete++
		return
	}
	for _, o := range h.s.ops {
		if o.account == a && o.l == h.l && o.rangeID == h.id && o.lost && o.index > 0 && o.numbered != nil && !o.reported {
			h.fail(ErrReport, "write %d of %s is lost, and is not reported", o.id, a.name)
		}
	}
}
