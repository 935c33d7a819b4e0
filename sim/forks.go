package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// The secondary of an account becomes its primary without the former one (R20). What it has applied at its commit is the
// fork: from there on it goes its own way. The former primary may go on until it learns of that (R21), and what it does is
// lost, as is what it had committed above the fork; nothing else is:
//
//   - The fork records name where each stream of the copy ends, and the copy is frozen in every range.
//   - What was committed at or before a Last Sync Time that the location has shown is in the copy.
//   - What is lost is never shown by the new primary, nor by the former one once it is the secondary.
//   - The former primary acknowledges no write after one of its nodes has learned of the promotion, by that node, and none
//     at all after all its nodes were down, in a run with fences. With a witness instead none after the commit of a promotion
//     that has claimed an epoch above the gate's, or above the last one that both locations know of.

// fork is what the newest failover of an account has left at its former primary, if that was not asked.
type fork struct {
	from *location
	// at is when it was committed. restarted: all nodes of the former primary were down at once since.
	at        time.Duration
	restarted bool
	// claim is the epoch that the promotion had claimed at the witness, zero for none (R21).
	claim geo.Epoch
}

// unplanned reports whether the gate under which the catalog takes an account is that of a promotion, by the fork record
// that is committed with it.
func (h *history) unplanned(a *account) bool {
	f := h.forkRow(a, h.id)
	return f != nil && f.GeoEpoch() == h.m.gates[a.name].Epoch
}

// rowsOf are the rows of an account's partition in the catalog.
func (h *history) rowsOf(a geo.Account) partitionRows {
	p := catalog.AccountPartition(a)
	return partitionRows{p, h.l.history[geo.FirstRange(geo.Catalog)].m.parts[string(p.Append(nil))]}
}

func (h *history) forkRow(a *account, id geo.RangeID) *catalog.Fork {
	f, err := catalog.GetFork(h.rowsOf(a.name), a.name, id)
	if err != nil {
		h.s.fail(err)
	}
	return f
}

// promotion is the one of an account to this location, nil for none.
func (l *location) promotion(a geo.Account) *catalog.Promotion {
	p, err := catalog.GetPromotion(l.history[geo.FirstRange(geo.Catalog)].rowsOf(a), a)
	if err != nil {
		l.s.fail(err)
	}
	return p
}

// checkForkRecords: a promotion is committed with the copy frozen in all ranges, and names where it ends.
func (h *history) checkForkRecords(a *account) {
	e := h.m.gates[a.name].Epoch
	for _, id := range everyRange {
		own, f := h.l.history[id], h.forkRow(a, id)
		gate := own.m.gates[a.name]
		if f == nil || gate.Epoch != e || gate.Role != change.RoleSecondary || gate.Open || gate.Turn%2 == 0 {
			own.fail(ErrFork, "%s is promoted under gate %+v, with fork record %+v", a.name, gate, f)
			return
		}
		for lane := range geo.Lane(geo.LaneCount) {
			at, named := own.m.cursors[geo.Stream{Account: a.name, Epoch: e, Range: id, Lane: lane}], f.Of(lane)
			if at != (geo.Head{Seq: named.Seq, Hash: named.Hash}) {
				own.fail(ErrFork, "lane %d of %s is at #%d, its fork record says #%d", lane, a.name, at.Seq, named.Seq)
			}
		}
	}
}

// checkFrozen: a copy that is frozen, or of a former epoch, takes no record.
func (h *history) checkFrozen(r *change.Record) {
	if g := h.m.gates[r.Account]; g.Epoch == r.Epoch && g.Role == change.RoleSecondary && !g.Open && g.Turn%2 == 1 {
		h.fail(ErrFork, "%s #%d is applied to a frozen copy", r.Stream(), r.Seq)
	}
}

// promoted has an account go on from what the location has of it, whose catalog has committed that it is the primary.
func (h *history) promoted(a *account) {
	from := h.l.far
	h.s.countPromoted(a)
	for _, id := range h.s.shipped { // The catalog first: it says which containers there are.
		own, was := h.l.history[id], from.history[id]
		if own.svc == geo.Catalog {
			own.forkContainers(a)
		} else {
			own.forkPartitions(a, was)
		}
	}
	a.fork, a.incomplete = &fork{from: from, at: h.s.now, claim: a.claim}, true
	if a.claim != (geo.Epoch{}) {
		h.s.counts.PromotionClaimed++
	}
	a.forks++
	if a.fresh != nil && a.fresh.lost {
		a.fresh = nil
	}
}

// loseOp records that a write is not in what the new primary of its account has.
func (h *history) loseOp(id int, covered geo.Timestamp) {
	o := h.s.ops[id]
	if o.at <= covered {
		h.fail(ErrPromised, "write %d of %s was committed at %d, Last Sync Time was %d", id, o.account.name, o.at, covered)
	}
	if o.outcome == acked {
		h.s.counts.PromotionLost++
		h.s.event("%s write %d is lost to the promotion", o.l.name, id)
	}
	o.lost = true
}

// forkPartitions finds which writes of an account's partitions the copy here has, and forgets the others.
func (h *history) forkPartitions(a *account, from *history) {
	covered := a.synced[h.svc].lastSync
	for _, part := range slices.Sorted(maps.Keys(from.commits)) {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil || p.Account != a.name {
			continue
		}
		here := place{}
		last, _, err := parseLast(h.m.parts[part][lastRowOf(h.svc)])
		if err == nil {
			here = h.s.ops[last].place()
		}
		gone := h.s.container(p).deleted // Then the copy may have skipped records.
		passed := false                  // The writes of one group have one place, and follow each other here.
		from.commits[part] = slices.DeleteFunc(from.commits[part], func(c commit) bool {
			at := h.s.ops[c.id].place()
			lost := (here.before(at) || passed && at == here) && !gone
			passed = passed || err == nil && c.id == last
			if lost {
				h.loseOp(c.id, covered)
			}
			return lost
		})
	}
	h.forget(a)
	for part, rows := range h.m.parts {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil || p.Account != a.name {
			continue
		}
		if id, _, err := parseLast(rows[lastRowOf(h.svc)]); err == nil {
			h.newest[part] = id
			if t := h.s.ops[id].twin; t != nil {
				h.twins[part] = t.clone()
			}
		}
		seen := maps.Clone(from.versions[part]) // Those above the fork hold a write that is lost: see look.
		if seen == nil {
			seen = map[uint64]bool{}
		}
		maps.Copy(seen, h.versions[part])
		h.versions[part] = seen
	}
}

// forget drops what is known of an account's partitions from an earlier time in which its primary was here.
func (h *history) forget(a *account) {
	own := func(part string) bool {
		p, _, err := keys.ParsePartition([]byte(part))
		return err == nil && p.Account == a.name
	}
	maps.DeleteFunc(h.newest, func(part string, _ int) bool { return own(part) })
	maps.DeleteFunc(h.twins, func(part string, _ *blobTwin) bool { return own(part) })
}

// forkContainers finds which containers of an account the catalog here has.
func (h *history) forkContainers(a *account) {
	covered := geo.Timestamp(0)
	for _, svc := range h.s.used {
		covered = max(covered, a.synced[svc].lastSync)
	}
	for _, svc := range h.s.used {
		var kept []*container
		for _, c := range a.containers[svc] {
			row := h.m.parts[string(catalog.ContainerPartition(svc, a.name, c.name).Append(nil))][""]
			stored, err := catalog.ParseContainer([]byte(row))
			switch {
			case row == "" && c.deleted, err == nil && row != "" && stored.Over(c.generation):
				kept = append(kept, c)
			case row != "" && err == nil && stored.Generation() == c.generation:
				kept = append(kept, c)
				if c.deleted { // Its deletion has not arrived.
					h.loseOp(c.deletion, covered)
					c.deleted, c.strayed[h.l.far.parity] = false, true
				}
			default:
				h.loseOp(c.creation, covered)
				a.strays = append(a.strays, c)
			}
		}
		a.containers[svc] = kept
	}
}

// stray reports whether a write that takes effect here does so at a former primary that does not know yet. It fails the run
// where the range knows. The closing of a generation asks no gate: that of the catalog, which may have opened before this
// one after a move that ended, has decided about the deletion.
func (h *history) stray(o *op) bool {
	a := o.account
	if a.fork == nil || a.fork.from != h.l || a.home == h.l {
		return false
	}
	if g := h.m.gates[a.name]; o.write != nil && (g.Role != change.RolePrimary || !g.Open) {
		h.fail(ErrFormer, "a write of %s under gate %+v", a.name, g)
	}
	h.s.counts.StrayWrite++
	return true
}

// stale reports whether a location shows an account as its former primary, which does not know of the present one.
func (l *location) stale(a *account) bool {
	if a == nil || a.fork == nil || a.fork.from != l || a.home == l {
		return false
	}
	rec := l.record(a.name)
	return rec != nil && rec.Primary == l.name
}

// checkStray checks an answer of a former primary that may not know yet: see the rules above.
func (s *Sim) checkStray(o *op) {
	a := o.account
	if s.fences == nil || o.write == nil {
		return
	}
	gate := o.m.n.Range(o.rangeID).Machine.Gate(a.name)
	switch {
	case gate.PassedBy(a.fork.claim) && o.m.decides() > a.fork.at:
		s.fail(fmt.Errorf("%w: %s has answered write %d after the commit of a promotion with a claim", ErrFormer, o.l.name, o.id))
	case a.fork.restarted && s.third == nil:
		s.fail(fmt.Errorf("%w: %s has answered write %d, and all its nodes were down since %s was promoted", ErrFormer, o.l.name, o.id, a.name))
	case o.m.learned[a.name]:
		s.fail(fmt.Errorf("%w: %s-%d has answered write %d, and knows that %s was promoted", ErrFormer, o.l.name, o.m.id, o.id, a.name))
	}
}

// allDown records that all nodes of a location are down at once.
func (l *location) allDown() {
	l.reached = false
	for _, a := range l.s.accounts {
		if a.fork != nil && a.fork.from == l {
			a.fork.restarted = true
		}
	}
}

// keeps reports whether a stream of a former epoch is one of a former primary that has diverged: what the other location
// does not have of it stays in the outbox (R22).
func (h *history) keeps(st geo.Stream) bool {
	return h.s.account(st.Account).diverged[h.l.name] && h.ended(st)
}

// countPromotion counts what has become of promotions to this location and of those from it.
func (h *history) countPromotion(a *account) {
	p := h.l.promotion(a.name)
	if p != nil {
		if a.claim = (geo.Epoch{}); p.Claim != 0 && !p.Unwitnessed {
			a.claim = geo.Epoch{Number: p.Claim, Location: h.l.name}
		}
	}
	if p != nil && p.Phase == catalog.PromotionWithdrawing && a.promoting != p.Phase {
		h.s.counts.ClaimWithdrawn++
	}
	if p != nil && p.Phase == catalog.PromotionThawing && a.promoting != catalog.PromotionThawing {
		if strings.Contains(p.Reason, "within") {
			h.s.counts.PromotionLate++
		} else {
			h.s.counts.PromotionEnded++
		}
	}
	if a.home != h.l {
		a.promoting = ""
		if p != nil {
			a.promoting = p.Phase
		}
	}
}

// countPromoted counts a promotion that is committed.
func (s *Sim) countPromoted(a *account) {
	s.counts.PromotionTaken++
	if a.home.up() == len(a.home.members) {
		s.counts.PromotionAlive++
	}
}

// countFormer counts what has become of a former primary.
func (s *Sim) countFormer(was, now *catalog.Account) {
	unplanned := func(a *catalog.Account) bool {
		return a.Operation != nil && a.Operation.Kind == catalog.OperationTaken && a.Operation.Unplanned
	}
	switch {
	case !unplanned(was):
	case now.Operation == nil && !was.Operation.Rewinding:
		s.counts.FormerFollowed++
	case now.Operation == nil:
		s.counts.FormerRewound++
	case unplanned(now) && now.Operation.Diverged && !was.Operation.Diverged:
		s.counts.FormerDiverged++
		s.account(now.Name).diverged[now.Secondary] = true
	case was.Operation.Diverged && now.Bootstraps():
		s.counts.DivergedRebuilt++
	}
}
