package sim

import (
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// The primary of an account moves (R19). Its home is the location whose catalog has committed that it takes the account
// last: from that group on nobody else may take a write of it, or show it under the primary's name. The writes of a
// partition are ordered by how often it had moved when they took effect, and then by the index in the log of the home.

// place is where a write took effect: the zero value is before every other.
type place struct {
	moved int
	index uint64
}

func (o *op) place() place { return place{o.then, o.index} }

// before reports whether a write took effect before another one.
func (p place) before(other place) bool {
	return p.moved < other.moved || p.moved == other.moved && p.index < other.index
}

func (p place) later(other place) place {
	if p.before(other) {
		return other
	}
	return p
}

// tookPrimary looks at a record of an account that a catalog committed: of one that it takes, the location is the
// account's home from now on.
func (h *history) tookPrimary(a *account, rec *catalog.Account) {
	h.checkServed(a)
	if a.home == h.l && rec.Operation != nil && rec.Operation.Unplanned {
		a.taken[rec.GeoEpoch()] = true // It may go on above an epoch that the former primary has begun.
	}
	if rec.Primary != h.l.name || a.home == h.l {
		return
	}
	takes, later := rec.Operation != nil && rec.Operation.Kind == catalog.OperationTaken, rec.GeoEpoch().Compare(a.epoch) > 0
	if !takes && (!later || a.fork != nil && a.fork.from == h.l) {
		return // It was the primary, and does not know yet that it is not any more.
	}
	if takes && rec.Operation.Unplanned {
		h.promoted(a)
		h.becomesHome(a, rec)
		return
	}
	if !takes || !later {
		h.fail(ErrTakenEarly, "%s in %s after %s, %+v", a.name, rec.GeoEpoch(), a.epoch, rec.Operation)
		return
	}
	h.s.counts.Moved++
	a.incomplete, a.fork = false, nil
	for _, id := range h.s.shipped {
		h.l.history[id].inherit(a, h.l.far.history[id])
	}
	h.becomesHome(a, rec)
}

// becomesHome makes the location the account's home.
func (h *history) becomesHome(a *account, rec *catalog.Account) {
	h.s.event("%s is the primary of %s", h.l.name, a.name)
	a.moved++
	a.home = h.l
	a.taken[rec.GeoEpoch()] = true
	clear(a.wholeFrom) // The copy is now where the primary was.
	for _, seen := range a.synced {
		seen.before, seen.lastSync, seen.live = max(seen.before, seen.lastSync), 0, false
	}
}

// inherit takes what is known of an account's partitions from where its primary was.
func (h *history) inherit(a *account, from *history) {
	h.forget(a)
	of := func(part string) bool {
		p, _, err := keys.ParsePartition([]byte(part))
		return err == nil && p.Account == a.name
	}
	for part, id := range from.newest {
		if of(part) {
			h.newest[part] = id
		}
	}
	for part, t := range from.twins {
		if of(part) {
			h.twins[part] = t
		}
	}
	for part, had := range from.versions {
		if of(part) && h.svc != geo.Catalog {
			h.versions[part] = maps.Clone(had) // All states that a primary had.
		}
	}
}

// checkTaken: a location that takes an account has applied all that was numbered in its epoch (R19).
func (h *history) checkTaken(a *account) {
	for _, id := range h.s.shipped {
		from := h.l.far.history[id]
		for _, st := range slices.SortedFunc(maps.Keys(from.m.heads), geo.Stream.Compare) {
			if head := from.m.heads[st]; st.Account == a.name && st.Epoch == a.epoch && from.copied(st) != head {
				from.fail(ErrTakenEarly, "%s is at #%d where it is taken, the head is #%d", st, from.copied(st).Seq, head.Seq)
			}
		}
	}
}

// serves reports whether a location serves an account under the primary's name, by its record there.
func serves(l *location, rec *catalog.Account) bool { return rec.Primary == l.name && !rec.Offered() }

// checkServed: one location at most serves an account under the primary's name, but for a former primary that was not
// asked (R20, R21).
func (h *history) checkServed(a *account) {
	if rec := h.l.record(a.name); a.fork != nil || rec != nil && rec.Operation != nil && rec.Operation.Unplanned {
		return
	}
	here, there := h.l.record(a.name), h.l.far.record(a.name)
	if here != nil && there != nil && serves(h.l, here) && serves(h.l.far, there) {
		h.fail(ErrTwoPrimaries, "%s is served in %s and %s", a.name, here.GeoEpoch(), there.GeoEpoch())
	}
}

// checkGate: the gates of one location at most take writes of an account in a range. The catalog's gate is set in the
// group that takes the account, before what is known of former streams is dropped.
func (h *history) checkGate(a geo.Account, g change.Gate) {
	takes := func(g change.Gate) bool { return g.Role == change.RolePrimary && g.Open }
	known := h.s.account(a)
	taken := known != nil && h.svc == geo.Catalog && g.Role == change.RolePrimary && h.m.gates[a].Role == change.RoleSecondary
	unplanned := taken && h.unplanned(known)
	there := h.l.far.history[h.id].m.gates[a]
	asked := known == nil || known.fork == nil && !unplanned
	if takes(g) && takes(there) && !h.lossy() && (asked || g.Epoch == there.Epoch) {
		h.fail(ErrTwoPrimaries, "the gates of %s are %+v and %+v", a, g, there)
	}
	switch {
	case unplanned:
		h.checkForkRecords(known)
	case taken && known.home != h.l:
		h.checkTaken(known)
	}
}

// checkHome: a write takes effect at its account's primary, and where it was sent.
func (h *history) checkHome(o *op) {
	if o.account.home != h.l || o.l != h.l {
		h.fail(ErrFormer, "write %d of %s, whose primary is %s", o.id, o.account.name, o.account.home.name)
	}
}

// checkFormer: no write that came after another location took the account is acknowledged.
func (s *Sim) checkFormer(o *op) {
	if f := o.account.fork; f != nil && f.from == o.l && o.l != o.account.home {
		s.checkStray(o)
		return
	}
	if o.l != o.account.home && o.moved == o.account.moved {
		s.fail(fmt.Errorf("%w: write %d is acknowledged at %s", ErrFormer, o.id, o.l.name))
	}
}

// unopened returns which gate of an account does not fit its record, "" for none.
func (s *Sim) unopened(a *account) string {
	if s.failovers == nil && a.moved == 0 {
		return ""
	}
	for _, id := range everyRange {
		here, there := a.home.history[id].m.gates[a.name], a.home.far.history[id].m.gates[a.name]
		want := change.Gate{Epoch: a.epoch, Role: change.RolePrimary, Open: true, Numbered: true, Turn: a.record.Turn}
		if here != want || there.Turn%2 != 0 || there != (change.Gate{Epoch: a.epoch, Role: change.RoleSecondary, Open: true, Turn: there.Turn}) {
			return fmt.Sprintf("the gates of %s in r%d are %+v and %+v", a.name, id, here, there)
		}
	}
	return ""
}

// unknownThere reports whether a client would learn that the container of its write is not there: it asks the catalog
// of the location first, which knows what was deleted under former primaries.
func (s *Sim) unknownThere(o *op) bool {
	if o.numbered == nil || o.account.moved == 0 {
		return false
	}
	c := s.container(o.write.Partition())
	return c.deleted && c.deletedIn < o.account.moved
}

// drawHome draws where a client takes the primary of an account to be.
func (s *Sim) drawHome(a *account) *location {
	if s.failovers != nil && a.moved > 0 && s.failovers.Float64() < s.away {
		return a.home.far
	}
	return a.home
}

// serving finds a location that serves an account under the primary's name, as a request finds it: by the catalog there,
// under its lease; with the epoch that the account has there, where there are failovers.
func (s *Sim) serving(a *account, found func(*location, geo.Epoch), refused func()) {
	if s.failovers == nil {
		found(a.home, geo.Epoch{})
		return
	}
	l := a.home
	if s.failovers.Float64() < 2*s.away {
		l = a.home.far
	}
	l.underLease(geo.FirstRange(geo.Catalog), func(_ *member, cat *ranges.Range) {
		rec, err := catalog.GetAccount(cat.State(), a.name)
		if err != nil || !serves(l, rec) {
			s.counts.FormerRead++
			refused()
			return
		}
		found(l, rec.GeoEpoch())
	})
}
