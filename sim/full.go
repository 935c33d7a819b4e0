package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// In one run of fullEvery, once all is at rest, disks of one location or both have next to nothing left, of some nodes
// or of all; some nodes are ended meanwhile and start beside their full disks. The leader of each range must answer reads,
// each replica of the catalog, and secondaries their statistics, before there is room again (R5). Then all goes on by
// itself, and nothing is lost.
const fullEvery = 10

// fullMax is within what time reads are answered again: nodes start, and elect leaders.
const fullMax = 10 * time.Second

// fullAsk lies between two questions to a replica that has not answered.
const fullAsk = 100 * time.Millisecond

// planFull has the run fill disks at its end, drawn by itself: the rest is played as without.
func (s *Sim) planFull(seed uint64) {
	if seed%fullEvery == fullEvery-1 {
		s.fills = rand.New(rand.NewPCG(seed, 0x66756c6c))
	}
}

// fillDisks is that end of a run.
func (s *Sim) fillDisks() {
	if s.fills == nil || s.err != nil {
		return
	}
	for _, l := range s.locations {
		if s.fills.IntN(3) == 0 {
			continue
		}
		share := [...]float64{1, 1, 0.6}[s.fills.IntN(3)]
		for _, m := range l.members {
			if s.fills.Float64() < share {
				m.left = [...]uint64{60 << 20, 60 << 20, 200 << 20}[s.fills.IntN(3)]
				s.counts.DiskFilled++
				s.event("%s node %d: %d bytes left", l.name, m.id, m.left)
			}
		}
		if s.fills.IntN(3) > 0 {
			s.restartAll(l)
		}
	}
	s.runFor(time.Second) // What was under way settles.
	asked := fullReads{s: s, reads: map[fullRead]bool{}, synced: map[fullSync]bool{}}
	asked.ask()
	if !s.runUntil(fullMax, func() bool { return asked.missing() == "" }) && s.err == nil {
		s.fail(fmt.Errorf("%w: %s", ErrReadsNeedRoom, asked.missing()))
	}
	for _, l := range s.locations {
		for _, m := range l.members {
			m.left = 0
		}
	}
	s.drain()
}

// restartAll ends all nodes of a location, as an orderly stop or a power cut does, and starts them.
func (s *Sim) restartAll(l *location) {
	crash := s.fills.IntN(2) == 0
	for _, m := range l.members {
		if crash {
			m.crash()
		} else {
			m.stop()
		}
	}
	for _, m := range l.members {
		if m.n == nil {
			m.open()
		}
	}
}

// fullRead is a read of a range at one of its replicas, or at its leader if there is none; fullSync is a question for the statistics of a service.
type (
	fullRead struct {
		l  *location
		m  *member
		id geo.RangeID
	}
	fullSync struct {
		a   *account
		svc geo.Service
	}
)

// fullReads are the questions that have to be answered while disks are full; those that were have true.
type fullReads struct {
	s      *Sim
	reads  map[fullRead]bool
	synced map[fullSync]bool
}

// ask asks all that have not answered, again and again until none is left.
func (f *fullReads) ask() {
	for _, l := range f.s.locations {
		for _, q := range l.fullReads() {
			f.read(q)
		}
	}
	for _, a := range f.s.accounts {
		for _, svc := range f.s.used {
			f.sync(fullSync{a, svc})
		}
	}
	f.s.after(fullAsk, func() {
		if f.missing() != "" {
			f.ask()
		}
	})
}

// fullReads are the reads that a location must answer.
func (l *location) fullReads() (all []fullRead) {
	for _, id := range l.s.shipped {
		if all = append(all, fullRead{l: l, id: id}); id == geo.FirstRange(geo.Catalog) {
			for _, m := range l.holders(id) {
				all = append(all, fullRead{l, m, id})
			}
		}
	}
	return all
}

func (f *fullReads) read(q fullRead) {
	m := q.m
	if m == nil {
		m = q.l.newest(q.id)
	}
	if f.reads[q] || m == nil || m.n == nil {
		return
	}
	r, life := m.n.Range(q.id), m.life
	how := r.CatchUp
	if r.Leading() {
		how = r.Confirm
	}
	how(func(err error) {
		if err == nil && m.life == life && m.killed == nil && !f.reads[q] {
			f.reads[q] = true
			f.s.counts.FullRead++
		}
	})
	m.dirty = true
}

func (f *fullReads) sync(q fullSync) {
	if f.synced[q] {
		return
	}
	l := q.a.home.far
	l.underLease(geo.FirstRange(geo.Catalog), func(_ *member, catalog *ranges.Range) {
		l.underLease(geo.FirstRange(q.svc), func(m *member, _ *ranges.Range) {
			f.synced[q] = true
			f.s.checkSync(q.a, q.svc, m, catalog)
		})
	})
}

// missing names a question without an answer; "" if all have theirs.
func (f *fullReads) missing() string {
	for _, l := range f.s.locations {
		for _, q := range l.fullReads() {
			switch {
			case f.reads[q]:
			case q.m == nil:
				return fmt.Sprintf("no leader of r%d in %s answers reads", q.id, l.name)
			default:
				return fmt.Sprintf("r%d at %s node %d answers no read", q.id, l.name, q.m.id)
			}
		}
	}
	for _, a := range f.s.accounts {
		for _, svc := range f.s.used {
			if !f.synced[fullSync{a, svc}] {
				return fmt.Sprintf("%s has no statistics of %s %s", a.home.far.name, a.name, svc)
			}
		}
	}
	return ""
}
