package sim

import (
	"context"
	"fmt"
	"strconv"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// drawPartition draws what a client looks at.
func (s *Sim) drawPartition(a *account) keys.Partition {
	switch s.rng.IntN(4) {
	case 1, 2:
		return s.drawBlob(a).Partition()
	case 0:
		return s.drawGroup(a)
	default:
		return s.drawContainer(a, geo.Table).partition(singlePrefix + strconv.Itoa(s.rng.IntN(partitionsOf)))
	}
}

// checkPartition: a partition at the secondary, on any replica at any moment, is in
// a state that the primary had (invariant 2).
func (s *Sim) checkPartition(a *account) {
	l := a.home.far
	pick := s.rng.IntN(ranges.Replicas)
	p := s.drawPartition(a)
	m := l.holders(geo.FirstRange(p.Service))[pick]
	if m.n == nil || l.recovery.retired(m, geo.FirstRange(p.Service)) || s.container(p).deleted {
		return // Of a deleted container the other location may skip records.
	}
	if !m.readable(p) {
		s.counts.CopyRefused++
		return
	}
	if len(s.look(m, p, l.stale(a))) > 0 { // Else nothing arrived yet.
		s.counts.PartitionChecked++
	}
}

// look reads a partition on a replica, however far that is, and compares it with the states that
// the account's primary had; stale: the location shows it as a former primary that does not know of the present one.
func (s *Sim) look(m *member, p keys.Partition, stale bool) map[string]string {
	id := geo.FirstRange(p.Service)
	key := p.Append(nil)
	rows := m.l.history[id].read(m, key, len(key))
	who := fmt.Sprintf("%s-%d", m.l.name, m.id)
	a := s.account(p.Account)
	versions := a.home.history[id].versions[string(key)]
	if stale {
		versions = m.l.history[id].versions[string(key)]
	} else {
		s.checkKept(a, p, who, rows)
	}
	if len(rows) > 0 && !versions[hashRows(rows)] && !s.unread(p) {
		s.fail(fmt.Errorf("%w: %s %s at %s: %q", ErrNeverHad, p.Account, p.Object, who, rows))
	}
	s.checkContent(m, p, rows)
	return rows
}

// unread reports whether nobody reads a partition any more, and a location may have some of its rows alone: its container is
// deleted, and its account has moved there. An image leaves rows of such a container out, and nothing of it is rewound.
func (s *Sim) unread(p keys.Partition) bool {
	return s.account(p.Account).moved > 0 && s.container(p).deleted
}

// checkContent checks what the rows of a partition on a replica hold.
func (s *Sim) checkContent(m *member, p keys.Partition, rows map[string]string) {
	if s.unread(p) {
		return
	}
	s.checkWhole(fmt.Sprintf("%s-%d", m.l.name, m.id), p, rows)
	s.checkBlob(m, p, rows)
}

// read reads a partition as a client of the primary does (R5): it must see every write that was
// acknowledged before it began.
func (s *Sim) read(a *account, done func()) {
	leave := s.patiently(done)
	p := s.drawPartition(a)
	if a.fresh != nil && s.chance(0.5) {
		p = a.fresh.write.Partition() // A leader that was deposed and has not noticed lacks it.
	}
	floor := s.newestAcked(p)
	s.serving(a, func(l *location, e geo.Epoch) {
		floor.epoch = e
		floor.stale = l.stale(a) // It may learn of the present primary meanwhile.
		s.readAt(l, p, floor, leave)
	}, leave)
}

// readAt reads a partition at a location that serves the primary's name.
func (s *Sim) readAt(l *location, p keys.Partition, floor floor, leave func()) {
	id := geo.FirstRange(p.Service)
	m := l.leader(id)
	if m == nil {
		leave()
		return
	}
	life := m.life
	m.whenAwake(func() {
		if s.readLeased(m, p, floor) {
			leave()
			return
		}
		m.n.Range(id).Confirm(func(err error) {
			if err == nil && m.life == life && m.killed == nil {
				s.checkRead(m, p, floor)
			}
			leave()
		})
		m.dirty = true
	})
}

// readLeased reads as a query does while the lease holds, and reports whether it did.
func (s *Sim) readLeased(m *member, p keys.Partition, floor floor) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // It must not wait for another lease.
	if m.n.Range(geo.FirstRange(p.Service)).Read(ctx, func(ranges.State) error { return nil }) != nil {
		return false
	}
	s.counts.ReadLeased++
	s.checkRead(m, p, floor)
	return true
}

// floor is the last acknowledged write of a partition, as it was after some promotions of its account.
type floor struct {
	place
	account *account
	forks   int
	// stale: the read is answered by a former primary that did not know of the present one when it came.
	stale bool
	// epoch is that in which the account was found, zero if it never moves.
	epoch geo.Epoch
}

// promoted reports whether there was a promotion since.
func (f floor) promoted() bool { return f.account.forks != f.forks }

// missed reports whether what was seen is older. After a promotion that may be: the write may be lost (R20).
func (f floor) missed(seen place) bool { return !f.promoted() && seen.before(f.place) }

// newestAcked is the last acknowledged write of a partition.
func (s *Sim) newestAcked(p keys.Partition) floor {
	key, a := string(p.Append(nil)), s.account(p.Account)
	newest := floor{account: a, forks: a.forks}
	for _, o := range s.ops {
		if o.outcome == acked && o.partition == key && !o.lost {
			newest.place = newest.later(o.place())
		}
	}
	return newest
}

// checkKept: a write that was lost to a promotion shows nowhere but at a former primary that does not know of it. Of a
// deleted container it may: that is not rewound, nor read.
func (s *Sim) checkKept(a *account, p keys.Partition, who string, rows map[string]string) {
	if a.forks == 0 || len(rows) == 0 || s.container(p).deleted {
		return
	}
	if id, _, err := parseLast(rows[lastRowOf(p.Service)]); err == nil && s.ops[id].lost {
		s.fail(fmt.Errorf("%w: write %d of %s at %s", ErrRevived, id, a.name, who))
	}
}

func (s *Sim) checkRead(m *member, p keys.Partition, floor floor) {
	of := ranges.OfPrimary{Account: floor.account.name, Epoch: floor.epoch}
	if floor.epoch != (geo.Epoch{}) && of.Left(m.n.Range(geo.FirstRange(p.Service)).State()) {
		s.counts.FormerRead++
		return // Its client looks again where the account is.
	}
	s.counts.ReadChecked++
	var seen place
	// The location may not have known of a promotion when the read began there, and have learned of it since.
	stale := floor.stale || floor.promoted() || m.l.stale(s.account(p.Account))
	rows := s.look(m, p, stale)
	if stale {
		return // It may be old (R21).
	}
	if c := s.container(p); c.deleted && (len(rows) == 0 && s.sweeps || c.account.moved > 0) {
		return // Its rows may be swept, or the present primary has skipped some.
	}
	if v, ok := rows[lastRowOf(p.Service)]; ok {
		id, _, err := parseLast(v)
		if err != nil {
			s.fail(err)
			return
		}
		seen = s.ops[id].place()
	}
	if floor.missed(seen) {
		s.fail(fmt.Errorf("%w: %s-%d shows index %v of %s, %v was acknowledged", ErrStaleRead, m.l.name, m.id, seen, p.Object, floor.place))
	}
}
