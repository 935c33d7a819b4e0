package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// checkPause is the mean pause between two looks at Last Sync Time and at a
// partition of the secondary.
const checkPause = 15 * time.Millisecond

// startChecks begins the checks that look from outside, as clients do.
func (s *Sim) startChecks() {
	s.after(s.between(0, 2*checkPause), func() {
		for _, a := range s.accounts {
			s.askSync(a)
			s.checkPartition(a)
		}
		s.startChecks()
	})
}

// askSync asks the secondary of an account for its Last Sync Time, as a client
// does: under the leases of the range that holds the service and of the catalog.
func (s *Sim) askSync(a *account) {
	if a.asking && s.now-a.asked < patience {
		return
	}
	a.asking, a.asked = true, s.now
	l := a.home.far
	l.underLease(geo.FirstRange(geo.Table), func(own *ranges.Range) {
		l.underLease(geo.FirstRange(geo.Catalog), func(catalog *ranges.Range) {
			a.asking = false
			if own.Replica().Lease() > s.now {
				s.checkSync(a, own, catalog)
			}
		})
	})
}

// underLease calls f with a range at its leader once its lease holds; not at all
// where the leader dies before or does not lead.
func (l *location) underLease(id geo.RangeID, f func(*ranges.Range)) {
	m := l.leader(id)
	if m == nil {
		return
	}
	life, r := m.life, m.n.Range(id)
	r.Confirm(func(err error) {
		if err == nil && m.life == life && m.killed == nil {
			f(r)
		}
	})
	m.dirty = true
}

// checkSync holds the Last Sync Time that the secondary shows now against
// invariant 3 and R13.
func (s *Sim) checkSync(a *account, own, catalog *ranges.Range) {
	l := a.home.far
	got := stats.Of(a.home.name, a.name, geo.Table, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		if src.Range == catalog.ID() {
			return catalog.State().SyncTimes(src, name)
		}
		return own.State().SyncTimes(src, name)
	})
	if !got.Known() {
		return
	}
	s.counts.SyncChecked++
	if got.LastSync != a.lastSync {
		s.event("%s last sync time of %s is %d", l.name, a.name, got.LastSync)
	}
	if got.LastSync < a.lastSync {
		s.fail(fmt.Errorf("%w: %s: %d after %d", ErrSyncBack, a.name, got.LastSync, a.lastSync))
	}
	a.lastSync = max(a.lastSync, got.LastSync)
	for _, id := range shipped {
		h := a.home.history[id]
		cursors := l.history[id].m.cursors
		for _, st := range slices.SortedFunc(maps.Keys(h.sent), geo.Stream.Compare) {
			if want := h.upTo(st, got.LastSync); st.Account == a.name && cursors[st].Seq < want {
				s.fail(fmt.Errorf("%w: %s is at #%d, #%d was committed at or before %d",
					ErrMissing, st, cursors[st].Seq, want, got.LastSync))
			}
		}
	}
}

// checkPartition: a partition at the secondary, on any replica at any moment, is in
// a state that the primary had (invariant 2).
func (s *Sim) checkPartition(a *account) {
	l := a.home.far
	m := l.members[s.rng.IntN(nodeCount)]
	part := s.drawPartition(a)
	if m.n == nil || s.table(a.name, part.Generation).deleted {
		return // Of a deleted table the other location may skip records.
	}
	p := part.Append(nil)
	rows := l.history[geo.FirstRange(geo.Table)].read(m, p, len(p))
	if len(rows) == 0 {
		return // Nothing arrived yet: the state before the first write.
	}
	s.counts.PartitionChecked++
	if !a.home.history[geo.FirstRange(geo.Table)].versions[string(p)][hashRows(rows)] {
		s.fail(fmt.Errorf("%w: %s at %s-%d: %q", ErrNeverHad, a.name, l.name, m.id, rows))
	}
}

// read asks for the last write of a partition, as a client of the primary does
// (R5): what was acknowledged before the question is seen.
func (s *Sim) read(a *account, done func()) {
	gone := false
	leave := func() {
		if !gone {
			gone = true
			done()
		}
	}
	s.after(patience, leave)
	id := geo.FirstRange(geo.Table)
	m := a.home.leader(id)
	if m == nil {
		leave()
		return
	}
	p := s.drawPartition(a)
	floor := s.newestAcked(p)
	life := m.life
	m.n.Range(id).Confirm(func(err error) {
		if err == nil && m.life == life && m.killed == nil {
			s.checkRead(m, p, floor)
		}
		leave()
	})
	m.dirty = true
}

// newestAcked is the greatest index of an acknowledged write of a partition.
func (s *Sim) newestAcked(p keys.Partition) uint64 {
	var newest uint64
	key := string(p.Append(nil))
	for _, o := range s.ops {
		if o.outcome == acked && o.partition == key {
			newest = max(newest, o.index)
		}
	}
	return newest
}

func (s *Sim) checkRead(m *member, p keys.Partition, floor uint64) {
	s.counts.ReadChecked++
	v, ok, err := m.n.Range(geo.FirstRange(geo.Table)).State().Get(append(p.Append(nil), lastRow...))
	var seen uint64
	if err == nil && ok {
		var id int
		if id, _, err = parseLast(string(v)); err == nil {
			seen = s.ops[id].index
		}
	}
	if err != nil {
		s.fail(err)
		return
	}
	if seen < floor {
		s.fail(fmt.Errorf("%w: %s-%d shows index %d of %s, %d was acknowledged", ErrStaleRead, m.l.name, m.id, seen, p.Object, floor))
	}
}

// drain waits until the other location has everything: empty outboxes, every
// command answered, Last Sync Time past the end of the faults.
func (s *Sim) drain() {
	if s.err != nil {
		return
	}
	// The slowest clock of a leader tells the times.
	target := geo.TimestampOf(s.clock.Now().Add(-skewMax))
	var why string
	if s.runUntil(drainMax, func() bool {
		why = s.undrained(target)
		return why == ""
	}) || s.err != nil {
		return
	}
	s.fail(fmt.Errorf("%w: %s", ErrDrain, why))
}

// undrained says what is not there yet, empty where all is.
func (s *Sim) undrained(target geo.Timestamp) string {
	for _, a := range s.accounts {
		if a.lastSync < target {
			return fmt.Sprintf("Last Sync Time of %s is %d, healed at %d", a.name, a.lastSync, target)
		}
	}
	for _, l := range s.locations {
		for _, id := range shipped {
			m := l.newest(id)
			if m == nil {
				return fmt.Sprintf("%s r%d has no leader", l.name, id)
			}
			if b, err := m.n.Range(id).Machine.Backlog(); err != nil || b.Records > 0 {
				return fmt.Sprintf("%s r%d: %d records in the outbox (%v)", l.name, id, b.Records, err)
			}
			if n := m.n.Range(id).InSync(); n < nodeCount {
				return fmt.Sprintf("%s r%d: %d replicas in sync", l.name, id, n)
			}
		}
	}
	for _, o := range s.ops {
		if o.m != nil && o.answers == 0 {
			return fmt.Sprintf("write %d has no answer", o.id)
		}
	}
	return ""
}

// checkEnd compares everything with everything once nothing moves any more.
func (s *Sim) checkEnd() {
	if s.err != nil {
		return
	}
	s.event("drained")
	for _, l := range s.locations {
		for _, id := range everyRange {
			for _, m := range l.members {
				l.history[id].checkMember(m)
			}
		}
	}
	for _, id := range shipped {
		a, b := s.locations[0].history[id], s.locations[1].history[id]
		if differs := diff("row", s.living(a.m.rows()), s.living(b.m.rows())); differs != "" {
			s.fail(fmt.Errorf("%w: r%d: %s", ErrUnequal, id, differs))
		}
	}
	for _, o := range s.ops {
		if o.outcome == acked && o.index == 0 {
			s.fail(fmt.Errorf("%w: write %d", ErrAckLost, o.id))
		}
	}
}
