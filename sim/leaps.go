package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/feature"
)

// One seed in leapingEvery is a run in which all clocks of a location, or of both, leap ahead together by seconds to decades, and
// are right again (R6). No time may be ahead of the true one for it: see Sim.future. A location of which two nodes were
// started while its clocks were ahead could not know of it without the other one: they are right before the second.
const (
	leapingEvery = 10
	leaping      = 7
)

//
// In half of these runs both locations begin with clocks that are ahead, which agree, and are set right some seconds later. What
// was stamped meanwhile is a lower bound of all later times, for longer than anybody can wait. Last Sync Time goes by the
// clock from then on (R13): it is back before the run has drained, and checkWall checks that it is true.

// planLeaps draws whether the clocks of a run leap, and whether they begin ahead.
func (s *Sim) planLeaps(seed uint64) {
	if seed%leapingEvery != leaping {
		return
	}
	s.leaps = rand.New(rand.NewPCG(seed, 0x6c656170))
	if ahead := rand.New(rand.NewPCG(seed, 0x6168656164)); ahead.IntN(2) == 0 {
		s.beginsAhead = [...]time.Duration{10 * time.Minute, 30 * time.Hour, 20 * 365 * 24 * time.Hour}[ahead.IntN(3)]
		s.wrongClocks, s.ahead = true, true
	}
}

// beginAhead sets the clocks of both locations ahead, before a node is started.
func (s *Sim) beginAhead() {
	for _, l := range s.locations {
		l.leapt = s.beginsAhead
	}
}

// finalized are the levels of a node that is about to be started: those of a cluster that this program made.
func finalized() *feature.Gate {
	g := feature.NewGate(feature.Known)
	g.Raise(feature.Known, feature.Known)
	return g
}

// checkWall: all that was committed before Last Sync Time, by the true clock, is here, whatever its commit time (R13). How far
// the clock of a leader may have been off is not held against it.
func (h *history) checkWall(st geo.Stream, at geo.Seq, shown geo.Timestamp) {
	off := skewMax
	if h.s.counts.ClockJumped > 0 {
		off = futureMax
	}
	if before := geo.TimestampOf(shown.Time().Add(-off)); h.incarnation == 0 {
		n, _ := slices.BinarySearchFunc(h.sent[st], before, func(r sent, t geo.Timestamp) int { return cmp.Compare(r.committed, t) })
		if geo.Seq(n) > at {
			h.fail(ErrMissing, "%s is at #%d, #%d was committed before %s, which is shown", st, at, n, shown)
		}
		h.s.counts.WallChecked++
	}
}

// copiedAhead reports whether a copy was made while times were ahead, and its range was recovered with loss since: then it
// shows no Last Sync Time before its times have passed that of the copy (R4, docs/limits.md).
func (s *Sim) copiedAhead(a *account, svc geo.Service) bool {
	rec, m := a.home.far.record(a.name), a.home.far.newest(geo.FirstRange(svc))
	if s.beginsAhead == 0 || rec == nil || m == nil || rec.Copied.Time().Sub(s.clock.Now()) <= futureMax {
		return false
	}
	return m.n.Range(geo.FirstRange(svc)).Machine.Incarnation() != 0
}

// startLeaps has the clocks leap from time to time while there are faults.
func (s *Sim) startLeaps() {
	if s.leaps == nil {
		return
	}
	s.after(time.Duration(s.leaps.Int64N(int64(1500*time.Millisecond))), func() {
		if !s.faulty {
			return
		}
		if s.ahead {
			s.counts.ClocksLeapt++
			s.endLeaps() // They do not leap again: a clock that fell behind is not proven for as long as it was ahead.
			return
		}
		by := [...]time.Duration{20 * time.Second, 10 * time.Minute, 2 * time.Hour, 20 * 365 * 24 * time.Hour}[s.leaps.IntN(4)]
		which := s.leaps.IntN(3) // North, south, both.
		for i, l := range s.locations {
			if which == 2 || which == i {
				l.leapt = by
				s.event("%s clocks leap by %s", l.name, by)
			}
		}
		s.counts.ClocksLeapt++
		s.after(200*time.Millisecond+time.Duration(s.leaps.Int64N(int64(3*time.Second))), func() {
			s.endLeaps()
			s.startLeaps()
		})
	})
}

// endLeaps sets all clocks right that leapt.
func (s *Sim) endLeaps() {
	for _, l := range s.locations {
		if l.leapt != 0 {
			s.event("%s clocks right again", l.name)
		}
		l.leapt, l.startedLeapt = 0, 0
	}
	s.ahead = false
}

// startsLeapt counts that a node is about to be started while the clocks of its location are ahead.
func (l *location) startsLeapt() {
	if l.leapt == 0 || l.s.ahead { // Those of both locations were started so, and agree.
		return
	}
	if l.startedLeapt++; l.startedLeapt > 1 {
		l.s.event("%s clocks right again", l.name)
		l.leapt, l.startedLeapt = 0, 0
	}
}
