package sim

import (
	"math/rand/v2"
	"time"
)

// One seed in leapingEvery is a run in which all clocks of a location, or of both, leap ahead together by seconds to decades, and
// are right again (R6). No time may be ahead of the true one for it: see Sim.future. A location of which two nodes were
// started while its clocks were ahead could not know of it without the other one: they are right before the second.
const (
	leapingEvery = 10
	leaping      = 7
)

// planLeaps draws whether the clocks of a run leap.
func (s *Sim) planLeaps(seed uint64) {
	if seed%leapingEvery == leaping {
		s.leaps = rand.New(rand.NewPCG(seed, 0x6c656170))
	}
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
}

// startsLeapt counts that a node is about to be started while the clocks of its location are ahead.
func (l *location) startsLeapt() {
	if l.leapt == 0 {
		return
	}
	if l.startedLeapt++; l.startedLeapt > 1 {
		l.s.event("%s clocks right again", l.name)
		l.leapt, l.startedLeapt = 0, 0
	}
}
