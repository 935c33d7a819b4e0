package sim

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/server/flow"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// What must hold of an account whose copy is made, deleted and made again:
//
//   - Until the copy is whole it shows no Last Sync Time and may not be read; then all that was committed at or
//     before Last Sync Time is in it, whatever numbers it had when it was written (R17).
//   - What an image numbers changes no row at the primary.
//   - Rows of an account are wiped at its secondary alone, and none of a copy that has begun.
//   - At the end no operation is under way; an account without a copy has no row at the other location, and every
//     other one is live, also one whose stream forked or fell out.

// commit is a write of a partition that took effect.
type commit struct {
	at geo.Timestamp
	id int
}

// record is the record of an account in the catalog of a location, as its log has it; nil for none, and for one that
// is not complete.
func (l *location) record(name geo.Account) *catalog.Account {
	raw, ok := l.history[geo.FirstRange(geo.Catalog)].m.parts[string(catalog.AccountPartition(name).Append(nil))][""]
	if !ok {
		return nil
	}
	a, err := catalog.ParseAccount([]byte(raw))
	if err != nil {
		l.s.fail(err)
		return nil
	}
	if !a.Active {
		return nil
	}
	return a
}

// whole reports whether a location has all of an account that clients may read there.
func (l *location) whole(a *account) bool {
	if a == nil || a.home == l { // Nil while it is created.
		return true
	}
	rec := l.record(a.name)
	return rec != nil && rec.Redundancy.Geo() && !rec.Partial() && !l.stale(a)
}

// readable reports whether a client may be shown a partition as this replica has it: its account is whole here, and so is
// the replica. One that leads is: it has applied what completed the copy.
func (m *member) readable(p keys.Partition) bool {
	a, id := m.l.s.account(p.Account), geo.FirstRange(p.Service)
	if a.home == m.l {
		return true
	}
	return m.l.whole(a) && m.n.Range(id).Machine.AppliedState().Index >= a.wholeFrom[id] && m.regained(a, p.Service)
}

// regained is location.Location.CopyWhole, by what this replica has.
func (m *member) regained(a *account, svc geo.Service) bool {
	own, rec := m.n.Range(geo.FirstRange(svc)), m.l.record(a.name)
	if rec.Copied <= rec.LastFailover || own.Machine.Incarnation() == 0 {
		return true
	}
	cat := m.l.newest(geo.FirstRange(geo.Catalog))
	return cat != nil && replication(a, svc, own, cat.n.Range(geo.FirstRange(geo.Catalog)), noClock).Known()
}

// tookAccounts looks at the records of accounts after a group of the catalog.
func (h *history) tookAccounts() {
	if h.svc != geo.Catalog || h.s.moves == nil {
		return
	}
	for _, a := range h.s.accounts {
		if !slices.Contains(h.touched, string(catalog.AccountPartition(a.name).Append(nil))) {
			continue
		}
		rec := h.l.record(a.name)
		if rec == nil {
			continue
		}
		h.s.event("%s: %s is %s in epoch %d, %+v", h.l.name, a.name, rec.Redundancy, rec.Epoch, rec.Operation)
		h.countPromotion(a)
		h.tookPrimary(a, rec)
		if a.home == h.l {
			h.s.countMove(a, rec)
			h.s.diverges(a, a.record, rec)
			h.s.doubt(a, rec)
			a.record, a.epoch = rec, rec.GeoEpoch()
			h.steps(a, rec)
			continue
		}
		h.steps(a, rec)
		whole := h.l.whole(a)
		if whole && a.incomplete {
			for _, id := range h.s.shipped {
				a.wholeFrom[id] = uint64(len(h.l.history[id].log))
			}
		}
		a.incomplete = !whole
	}
}

// countMove counts what has become of an account whose record changes.
func (s *Sim) countMove(a *account, now *catalog.Account) {
	was := a.record
	if was == nil {
		return
	}
	s.countFailover(was, now)
	s.countFormer(was, now)
	kind := func(of *catalog.Account) catalog.OperationKind {
		if of.Operation == nil {
			return ""
		}
		return of.Operation.Kind
	}
	switch before, after := kind(was), kind(now); {
	case after == catalog.OperationBootstrap && was.Epoch != now.Epoch && before == after:
		s.counts.BootstrapAgain++
	case after == catalog.OperationBootstrap && was.Epoch != now.Epoch && was.Redundancy.Geo():
		s.counts.Rebuild++
	case after == catalog.OperationBootstrap && before == "" && was.Epoch == now.Epoch:
		s.counts.CopiedAgain++
	case after == catalog.OperationLeave && before == catalog.OperationBootstrap:
		s.counts.BootstrapLeft++
	case before == catalog.OperationBootstrap && after == "":
		s.counts.Bootstrapped++
	case before == catalog.OperationLeave && after == "":
		s.counts.Left++
	case was.Redundancy != now.Redundancy && after == "":
		s.counts.Relabeled++
	}
}

// ended reports whether a stream is of a former epoch of its account, by the gate of the range that it is of. One that
// was recovered may have lost the gate that its copy has.
func (h *history) ended(st geo.Stream) bool {
	of := func(gates map[geo.Account]change.Gate) bool { return gates[st.Account].Epoch.Compare(st.Epoch) > 0 }
	return of(h.m.gates) || h.incarnation != h.m.compared && of(h.l.far.history[h.id].m.gates)
}

// copies reports whether a change leaves all rows as they are: it is one of an image, or of a copy that is rewound.
func (h *history) copies(r *change.Record) bool {
	if h.s.moves == nil || len(r.Ops) == 0 {
		return false
	}
	rows := h.m.parts[string(r.Partition)]
	for _, o := range r.Ops {
		if v, ok := rows[string(o.Row)]; ok == o.Delete || v != string(o.Value) {
			return false
		}
	}
	h.s.counts.ImageRecord++
	return true
}

// checkCopied: what was committed at or before a Last Sync Time is in the copy, also what was written in a former
// epoch, or without a number.
func (s *Sim) checkCopied(a *account, svc geo.Service, upTo geo.Timestamp) {
	h := a.home.history[geo.FirstRange(svc)]
	if s.moves == nil || h.lossy() {
		return
	}
	missing := h.missing(a, h.commits, upTo)
	if missing == "" { // Of the time in which its primary was there.
		missing = h.missing(a, h.l.far.history[h.id].commits, upTo)
	}
	if missing != "" {
		s.fail(fmt.Errorf("%w: %s %s at %d: %s", ErrMissing, a.name, svc, upTo, missing))
	}
}

// missing returns a partition of an account whose copy is older than the last of some commits up to a time.
func (h *history) missing(a *account, commits map[string][]commit, upTo geo.Timestamp) (missing string) {
	s, there := h.s, h.l.far.history[h.id].m.parts
	for part, list := range commits {
		n, _ := slices.BinarySearchFunc(list, upTo, func(c commit, t geo.Timestamp) int {
			if c.at <= t {
				return -1
			}
			return 1
		})
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil || n == 0 || p.Account != a.name || s.container(p).deleted {
			continue
		}
		id, _, err := parseLast(there[part][lastRowOf(p.Service)])
		if want := s.ops[list[n-1].id]; err != nil || s.ops[id].place().before(want.place()) {
			why := fmt.Sprintf("%s of %s has %q, write %d was committed at %d", p.Object, p.Container, there[part][lastRowOf(p.Service)], want.id, list[n-1].at)
			if missing == "" || why < missing {
				missing = why
			}
		}
	}
	return missing
}

// checkCopyWipe: all rows of an account are wiped where it has its copy, before a copy of the epoch has begun.
func (h *history) checkCopyWipe(lower []byte) bool {
	for _, a := range h.s.accounts {
		for _, svc := range geo.Services {
			own := string(keys.AppendAccount(nil, svc, a.name))
			if string(lower) != own && string(lower) != string(catalog.ContainersPrefix(svc, a.name)) {
				continue
			}
			gate := h.m.gates[a.name]
			if h.s.moves == nil || a.home == h.l || gate.Role == change.RolePrimary || a.taken[a.epoch] {
				h.fail(ErrSwept, "all of %s", a.name) // Also where it had its primary: it has all of it.
			}
			for st := range h.m.cursors {
				if st.Account == a.name && st.Epoch == gate.Epoch {
					h.fail(ErrSwept, "the copy of %s, which has begun in %s", a.name, gate.Epoch)
				}
			}
			h.s.counts.CopyWiped++
			return true
		}
	}
	return false
}

// unmoved returns what is still to come of the changes of an account's redundancy, "" for nothing.
func (s *Sim) unmoved(a *account) string {
	if s.moves == nil {
		return ""
	}
	here, there := a.home.record(a.name), a.home.far.record(a.name)
	switch {
	case here == nil:
		return fmt.Sprintf("%s has no record at %s", a.name, a.home.name)
	case here.Operation != nil:
		return fmt.Sprintf("an operation of %s is under way: %+v: %+v", a.name, *here.Operation, *here)
	case a.home.far.promotion(a.name) != nil:
		return fmt.Sprintf("a promotion of %s is under way: %+v", a.name, a.home.far.promotion(a.name))
	case there == nil || there.Operation != nil || there.GeoEpoch() != here.GeoEpoch() || there.Redundancy != here.Redundancy:
		return fmt.Sprintf("%s is not at %s as it is: %+v", a.name, a.home.far.name, there)
	case here.Redundancy.Geo():
		return s.unopened(a)
	}
	for _, id := range everyRange {
		for part, rows := range a.home.far.history[id].m.parts {
			p, _, err := keys.ParsePartition([]byte(part))
			if err == nil && p.Account == a.name && len(rows) > 0 && p != catalog.AccountPartition(a.name) {
				return fmt.Sprintf("rows of %s, which is LRS, are at %s", a.name, a.home.far.name)
			}
		}
	}
	return ""
}

// hasCopy reports whether an account has a copy.
func (a *account) hasCopy() bool {
	rec := a.home.record(a.name)
	return rec == nil || rec.Redundancy.Geo()
}

// shows returns in which epoch of an account its secondary may show a Last Sync Time, by the account's record in the
// range of the catalog there: see location.Location.Replication.
func (s *Sim) shows(a *account, cat *ranges.Range) (e geo.Epoch, ok bool) {
	rec, err := catalog.GetAccount(cat.State(), a.name)
	if err != nil || !rec.Active || rec.Secondary != a.home.far.name {
		return e, false
	}
	if is := flow.CopyOf(rec); is != stats.CopyWhole {
		if is == stats.CopyPartial {
			s.counts.BootstrapSeen++
		}
		return e, false
	}
	return rec.GeoEpoch(), true
}
