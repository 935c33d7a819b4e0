package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// checkPause is the mean pause between two looks at Last Sync Time and at a
// partition of the secondary.
const checkPause = 15 * time.Millisecond

// conserveEvery is how many looks lie between two at the numbers of all streams.
const conserveEvery = 8

// startChecks begins the checks that look from outside, as clients do.
func (s *Sim) startChecks() {
	s.after(s.between(0, 2*checkPause), func() {
		if s.rewritten {
			return
		}
		if s.looks++; s.looks%conserveEvery == 0 {
			s.checkConserved()
		}
		for _, l := range s.locations {
			l.forgive()
		}
		for _, a := range s.accounts {
			s.askSync(a, s.used[s.rng.IntN(len(s.used))])
			s.checkPartition(a)
			s.read(a, func() {}) // By clients that only read, and wait for nobody.
		}
		s.startChecks()
	})
}

// askSync asks the secondary of an account for the Last Sync Time of a service, as a
// client does: under the leases of the range that holds the service and of the catalog.
func (s *Sim) askSync(a *account, svc geo.Service) {
	seen := a.synced[svc]
	if seen.asking && s.now-seen.asked < patience {
		return
	}
	seen.asking, seen.asked = true, s.now
	l := a.home.far
	l.underLease(geo.FirstRange(svc), func(m *member, own *ranges.Range) {
		life := m.life
		l.underLease(geo.FirstRange(geo.Catalog), func(_ *member, catalog *ranges.Range) {
			seen.asking = false
			if m.life == life && own.Replica().Lease() > s.now && a.home.far == l {
				s.checkSync(a, svc, m, catalog)
			}
		})
	})
}

// underLease calls f with a range and its leader once its lease holds; it does not call f if the
// leader dies first or does not lead.
func (l *location) underLease(id geo.RangeID, f func(*member, *ranges.Range)) {
	m := l.leader(id)
	if m == nil {
		return
	}
	life, r := m.life, m.n.Range(id)
	r.Confirm(func(err error) {
		if err == nil && m.life == life && m.killed == nil {
			f(m, r)
		}
	})
	m.dirty = true
}

// checkSync checks invariant 3 and R13 for the Last Sync Time that the secondary shows now. m
// leads the service's range there.
func (s *Sim) checkSync(a *account, svc geo.Service, m *member, catalog *ranges.Range) {
	l, own, at := a.home.far, m.n.Range(geo.FirstRange(svc)), s.now
	got, seen := replication(a, svc, own, catalog, m.clock.Now), a.synced[svc]
	if s.now != at {
		return // Reading the clock took a while: what the range held then may not be what it holds now.
	}
	epoch, whole := s.shows(a, catalog)
	if seen.live = whole && got.Known(); !seen.live {
		return
	}
	if seen.epoch != epoch {
		seen.epoch, seen.lastSync = epoch, 0
	}
	s.counts.SyncChecked++
	if got.LastSync != seen.lastSync {
		s.event("%s last sync time of %s %s is %d", l.name, a.name, svc, got.LastSync)
	}
	if s.future(got.LastSync) {
		s.fail(fmt.Errorf("%w: Last Sync Time of %s %s is %s", ErrFuture, a.name, svc, got.LastSync))
	}
	if s.beginsAhead != 0 && !s.ahead && seen.lastSync.Time().Sub(s.clock.Now()) > futureMax {
		seen.lastSync = 0 // It was shown by clocks that were ahead.
	}
	if got.LastSync < seen.lastSync {
		s.fail(fmt.Errorf("%w: %s %s: %d after %d", ErrSyncBack, a.name, svc, got.LastSync, seen.lastSync))
	}
	seen.lastSync = max(seen.lastSync, got.LastSync)
	for _, id := range [...]geo.RangeID{catalog.ID(), own.ID()} {
		h := a.home.history[id]
		cursors := l.history[id].m.cursors
		for _, st := range slices.SortedFunc(maps.Keys(h.sent), geo.Stream.Compare) {
			if st.Account != a.name || st.Epoch != epoch {
				continue
			}
			want := h.promisedBy(st, got.Committed())
			if at := cursors[st].Seq; at < want {
				s.fail(fmt.Errorf("%w: %s is at #%d, #%d was committed at or before %d", ErrMissing, st, at, want, got.Committed()))
				return
			}
			if s.beginsAhead != 0 && !s.ahead && got.LastSync.Time().Sub(s.clock.Now()) <= futureMax {
				h.checkWall(st, cursors[st].Seq, got.LastSync)
			}
			m.checkReceived(st, h.sent[st][seen.checked[st]:max(want, seen.checked[st])])
			seen.checked[st] = max(seen.checked[st], want)
		}
	}
	s.checkCopied(a, svc, got.LastSync)
}

// noClock compares no time with a clock.
func noClock() time.Time { return time.Time{} }

// replication is what Get Service Stats answers at the secondary of an account, from the range
// that holds the service there and from the catalog, with the clock that now reads.
func replication(a *account, svc geo.Service, own, cat *ranges.Range, now func() time.Time) stats.Replication {
	var known []cursor.Progress
	for _, d := range stats.Sources(firstRanges, a.name, svc) {
		from := own
		if d.ID == cat.ID() {
			from = cat
		}
		known = append(known, from.Machine.Progress(geo.SourceRange{Origin: a.home.name, Range: d.ID}, a.name))
	}
	in := stats.Inputs{Account: a.name, Service: svc, Primary: a.home.name, From: firstRanges, Known: known}
	if rec, err := catalog.GetAccount(cat.State(), a.name); err == nil && rec.Copied > rec.LastFailover {
		in.Copied = rec.Copied
	}
	in.Now = now() // Last: a clock may take a while to read.
	return stats.Compute(in)
}

// checkReceived: the payload of records at or below Last Sync Time is here, except for records
// that were skipped because their container was deleted.
func (m *member) checkReceived(st geo.Stream, records []sent) {
	for _, r := range records {
		rec, err := change.ParseRecord(r.bytes)
		if err != nil {
			m.l.s.fail(err)
			return
		}
		if p, _, err := keys.ParsePartition(rec.Partition); err == nil && len(rec.Chunks) > 0 && !m.fed && !m.l.s.container(p).deleted {
			m.checkChunks(fmt.Sprintf("%s #%d, below Last Sync Time,", st, rec.Seq), m.uncollected(rec.Chunks))
		}
	}
}

// drain waits until the other location has everything: empty outboxes, every
// command answered, Last Sync Time past the end of the faults.
func (s *Sim) drain() {
	if s.err != nil {
		return
	}
	// The slowest clock of a leader gives the times.
	target := geo.TimestampOf(s.clock.Now().Add(-skewMax))
	var why string
	if s.runUntil(drainMax, func() bool {
		why = s.undrained(target)
		return why == ""
	}) || s.err != nil {
		return
	}
	if why == s.corruptionSeen {
		s.fail(fmt.Errorf("%w: %s", ErrUnrepaired, why))
		return
	}
	s.fail(fmt.Errorf("%w: %s", ErrDrain, why))
}

// undrained returns what has not arrived yet, "" for nothing.
func (s *Sim) undrained(target geo.Timestamp) string {
	for _, a := range s.accounts {
		if why := s.unmoved(a); why != "" {
			return why
		}
		if !a.hasCopy() {
			continue
		}
		for _, svc := range s.used {
			if missing, stopped := s.stopped(a, svc); missing != "" {
				return missing
			} else if stopped && s.moves != nil {
				return fmt.Sprintf("the copy of %s cannot go on", a.name)
			} else if stopped {
				continue
			}
			if s.copiedAhead(a, svc) {
				continue
			}
			// A clock that was ahead has left its times in the log of one range, not of both.
			want := max(target, min(a.home.healed[geo.FirstRange(svc)], a.home.healed[geo.FirstRange(geo.Catalog)]))
			if s.beginsAhead != 0 { // Both have times that no clock reaches.
				want = target
			}
			if t := a.synced[svc].lastSync; t < want {
				return fmt.Sprintf("Last Sync Time of %s %s is %d, healed at %d", a.name, svc, t, want)
			}
		}
		if why := s.refusedAtRest(a); why != "" {
			return why
		}
	}
	for _, l := range s.locations {
		if why := l.untrusted(); why != "" {
			return fmt.Sprintf("%s %s", l.name, why)
		}
		for _, id := range s.shipped {
			if why := l.history[id].backlog(); why != "" {
				return why
			}
			if why := l.history[id].unswept(); why != "" {
				return why
			}
		}
	}
	for _, o := range s.ops {
		if o.m != nil && o.answers == 0 {
			return fmt.Sprintf("write %d has no answer", o.id)
		}
	}
	return s.unrepaired()
}

// unrepaired returns which damaged copy is still there, "" for none. It reads the disks only now
// and then, since that costs more than everything else.
func (s *Sim) unrepaired() string {
	if s.now < s.corruptionCheckedAt+corruptionPause {
		return s.corruptionSeen
	}
	s.corruptionCheckedAt, s.corruptionSeen = s.now, ""
	for _, l := range s.locations {
		for _, m := range l.members {
			if m.logCorrupted && m.logCorrupt() {
				s.corruptionSeen = fmt.Sprintf("%s-%d: a bit of the log is flipped", l.name, m.id)
			}
			if why := m.unrepaired(); why != "" {
				s.corruptionSeen = fmt.Sprintf("%s-%d: %s", l.name, m.id, why)
			}
		}
	}
	return s.corruptionSeen
}

// checkEnd compares everything with everything once nothing moves any more.
func (s *Sim) checkEnd() {
	if s.err != nil {
		return
	}
	s.event("drained")
	s.checkConserved()
	s.countStopped()
	for _, l := range s.locations {
		for _, id := range everyRange {
			for _, m := range l.holders(id) {
				l.history[id].checkMember(m)
			}
			l.history[id].checkForgotten()
		}
	}
	for _, id := range s.shipped {
		a, b := s.locations[0].history[id], s.locations[1].history[id]
		if differs := diff("row", s.comparable(a.m.rows()), s.comparable(b.m.rows())); differs != "" {
			s.fail(fmt.Errorf("%w: r%d: %s", ErrUnequal, id, differs))
		}
	}
	s.verifyAll(true)
	for _, l := range s.locations {
		l.lookAtAll()
	}
	for _, o := range s.ops {
		if o.outcome == acked && o.index == 0 && !o.lost {
			s.fail(fmt.Errorf("%w: write %d", ErrAckLost, o.id))
		}
	}
}

// lookAtAll reads every partition of a living container, on every replica.
func (l *location) lookAtAll() {
	for _, svc := range l.s.used {
		for _, m := range l.holders(geo.FirstRange(svc)) {
			m.lookAt(geo.FirstRange(svc))
		}
	}
}

// lookAt reads every partition of a range that is in a living container.
func (m *member) lookAt(id geo.RangeID) {
	s := m.l.s
	if s.rewritten {
		return // The histories end where it was.
	}
	for _, part := range slices.Sorted(maps.Keys(m.l.history[id].m.parts)) {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil {
			s.fail(err)
			return
		}
		if p.Service == geo.Catalog || keptAside(p.Account) || s.container(p).deleted || !m.readable(p) {
			continue
		}
		s.look(m, p, false)
	}
}
