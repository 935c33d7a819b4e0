package sim

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// loss is what a range of one location lost when it was recovered (R4), and what the other
// location had received before. Whether a copy still fits follows from the histories alone:
//
//	forked   the copy's last record is none of the source's: the source lost it
//	lost     the copy's cursor is below what the source deleted: the copy lost what it had acknowledged
//
// Such a stream must be stopped, durably and at both ends (R16), and no other. What that means for
// Last Sync Time is said at ErrHidden.
type loss struct {
	// incarnation is that of the range since its last recovery.
	incarnation geo.Incarnation
	// announced means that the other location took a closed record of this incarnation.
	announced bool
	// broken is the greatest T that the other location took of an earlier incarnation: no commit of
	// that one followed, but those of this one may.
	broken geo.Timestamp
	// ghosts are the lost records of the range's own streams.
	ghosts map[geo.Hash]bool
	// revived are the records that the survivor of the recovery held and the range had not committed: a
	// leader that was cut off proposed them. The recovery commits them (R4), although the range may have
	// promised since that nothing of their time follows.
	revived map[geo.Hash]bool
	// received is how far each received stream was before.
	received map[geo.Stream]geo.Seq
}

// lose forgets what followed the first kept entries of the log, which was re-formed under a new
// incarnation.
func (h *history) lose(kept uint64, as geo.Incarnation) {
	for st, at := range h.m.cursors {
		h.received[st] = max(h.received[st], at.Seq)
	}
	for _, list := range h.sent {
		for _, r := range list {
			h.ghosts[r.hash] = true
		}
	}
	h.broken, h.promised = max(h.broken, h.promised), 0
	h.incarnation, h.announced = as, false
	h.loseOps(kept)
	h.log = h.log[:kept]
	h.m, h.sent, h.newest, h.twins = newModel(), map[geo.Stream][]sent{}, map[string]int{}, map[string]*blobTwin{}
	h.commits = map[string][]commit{}
	for _, e := range h.log {
		if !e.effective {
			continue
		}
		if err := h.replay(e.data); err != nil {
			h.s.fail(err)
			return
		}
	}
	for _, m := range h.l.members {
		delete(m.owes, h.id)
	}
	h.countLostGates()
	for _, a := range h.s.accounts {
		for _, svc := range h.s.used {
			a.synced[svc].lose(h, a)
		}
	}
}

// loseOps forgets that writes above kept took effect.
func (h *history) loseOps(kept uint64) {
	for _, o := range h.s.ops {
		if o.l != h.l || o.rangeID != h.id || o.index <= kept {
			continue
		}
		if o.outcome == acked {
			h.s.counts.WriteLost++
			h.s.event("%s write %d lost", h.l.name, o.id)
		}
		o.lost, o.index = true, 0
		if o.account.fresh == o {
			o.account.fresh = nil
		}
	}
	for _, a := range h.s.accounts {
		for _, c := range a.containers[h.svc] {
			c.closed[h.l.parity] = false // Those that the log kept are closed again.
		}
	}
}

// lose: what clients saw of a service before a range of it was recovered.
func (seen *synced) lose(h *history, a *account) {
	for st := range seen.checked {
		if st.Range == h.id {
			seen.checked[st] = min(seen.checked[st], geo.Seq(len(a.home.history[h.id].sent[st])))
		}
	}
	if a.home.far == h.l && a.synced[h.svc] == seen {
		seen.lastSync = 0 // The copy goes back, and what it shows with it.
	}
}

// replay takes a group that was checked when it took effect.
func (h *history) replay(data []byte) error {
	g, err := change.ParseGroup(data)
	if err != nil {
		return err
	}
	return g.Parts(func(kind change.PartKind, body []byte) error {
		if kind == change.PartChange {
			r, err := change.ParseRecord(body)
			if err != nil {
				return err
			}
			if err := h.replayChange(&r, body); err != nil {
				return err
			}
		}
		h.reclose(kind, body)
		return h.m.part(kind, body)
	})
}

func (h *history) replayChange(r *change.Record, body []byte) error {
	if r.Seq != 0 {
		next := sent{body, r.CommitTime, change.HashOf(body), geo.TimestampOf(h.s.clock.Now()), r.Incarnation}
		h.sent[r.Stream()] = append(h.sent[r.Stream()], next)
		delete(h.ghosts, next.hash)
	}
	if h.svc == geo.Catalog || h.copies(r) { // As in checkChange.
		return nil
	}
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		return err
	}
	for _, o := range r.Ops {
		if string(o.Row) != lastRowOf(h.svc) {
			continue
		}
		id, _, err := parseLast(string(o.Value))
		if err != nil {
			return err
		}
		h.newest[string(r.Partition)] = id
		h.commits[string(r.Partition)] = append(h.commits[string(r.Partition)], commit{r.CommitTime, id})
		if h.svc == geo.Blob {
			h.tookBlob(p, h.s.ops[id])
		}
	}
	return nil
}
