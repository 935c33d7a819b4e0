package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// Changes of redundancy while clients write, and rebuilds of copies, for which operators ask; the nodes carry
// them out: see desk. What happens is drawn apart from everything else.

// movingShare is how many seeds have changes. startsAlone is how many of their accounts begin as LRS, movesMax how
// many changes an account has at most.
const (
	movingShare = 0.6
	startsAlone = 0.35
	movesMax    = 3
)

// planMoves draws whether a run has changes of redundancy.
func (s *Sim) planMoves(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x72656d6f7665))
	if rng.Float64() < movingShare || s.losing || s.doubts || s.promotes {
		s.moves = rng
		s.planFailovers(seed)
	}
}

// imageBounds are small, so that an image has many steps, and waits for the other location.
func (s *Sim) imageBounds() primary.ImageBounds {
	return primary.ImageBounds{Rows: 8, Ahead: [...]uint64{600, 4 << 10, 64 << 10}[s.moves.IntN(3)]}
}

// copyRate is that of images, in bytes per second, 0 for no bound.
func (s *Sim) copyRate() uint64 { return [...]uint64{0, 0, 64 << 10}[s.moves.IntN(3)] }

// redundancyAtStart is what an account is created with.
func (s *Sim) redundancyAtStart() catalog.Redundancy {
	if s.moves != nil && s.story == nil && s.moves.Float64() < startsAlone {
		return catalog.LRS
	}
	return catalog.RAGRS
}

// startMoves lets operators change accounts from now on.
func (s *Sim) startMoves() {
	if s.moves == nil {
		return
	}
	for _, a := range s.accounts {
		at := make([]time.Duration, s.moves.IntN(movesMax+1))
		for i := range at {
			at[i] = s.now + faultPhase/20 + time.Duration(s.moves.Int64N(int64(faultPhase*18/20)))
		}
		slices.Sort(at)
		s.nextMove(a, at)
	}
}

// nextMove makes the changes of an account one after the other, none before its time.
func (s *Sim) nextMove(a *account, at []time.Duration) {
	if len(at) == 0 {
		return
	}
	s.after(max(0, at[0]-s.now), func() {
		if !s.faulty {
			return
		}
		s.operate(a, s.drawMove(a), func() { s.nextMove(a, at[1:]) })
	})
}

// move is what an operator asks for: another redundancy, or a copy made again if to is empty.
type move struct{ to catalog.Redundancy }

func (s *Sim) drawMove(a *account) move {
	now := catalog.LRS
	if rec := a.home.record(a.name); rec != nil {
		now = rec.Redundancy
	}
	draw := s.moves.Float64()
	switch {
	case now == catalog.LRS && draw < 0.3:
		return move{catalog.GRS}
	case now == catalog.LRS:
		return move{catalog.RAGRS}
	case draw < 0.45:
		return move{}
	case draw < 0.8:
		return move{catalog.LRS}
	case now == catalog.GRS:
		return move{catalog.RAGRS}
	}
	return move{catalog.GRS}
}

// operate has an operator ask for a change until it is taken.
func (s *Sim) operate(a *account, o move, done func()) {
	again := func() { s.after(operatorPause, func() { s.operate(a, o, done) }) }
	m := a.home.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() {
		again()
		return
	}
	m.begin(func() {
		var err error
		if o.to == "" {
			_, _, err = m.desk.directory.Rebuild(context.Background(), a.name, nil)
		} else {
			_, _, err = m.desk.directory.Update(context.Background(), a.name, o.to, nil)
		}
		s.event("%s: asked for %q: %v", a.name, o.to, err)
		rec := a.home.record(a.name)
		if err != nil && (o.to != "" || rec == nil || rec.Redundancy.Geo()) {
			again()
			return
		}
		done()
	})
}

// mend has operators make those copies again that cannot go on, once the faults have ended.
func (s *Sim) mend() {
	if s.moves == nil {
		return
	}
	s.after(mendPause, func() {
		for _, a := range s.accounts {
			if s.err == nil && !a.mended && (s.beyondRepair(a) || diverged(a.home.record(a.name))) {
				a.mended = true
				s.operate(a, move{}, func() { a.mended = false })
			}
		}
		s.mend()
	})
}

// mendPause lies between two looks for copies that cannot go on.
const mendPause = 150 * time.Millisecond

// beyondRepair reports whether a stream of an account is stopped for good, at both ends.
func (s *Sim) beyondRepair(a *account) bool {
	for _, id := range s.shipped {
		h := a.home.history[id]
		for _, st := range h.streams(a.name) {
			must := h.mustStop(st)
			if must != change.NotStopped && h.m.stops[st].Reason == must && h.l.far.history[id].m.stops[st].Reason == must {
				return true
			}
		}
	}
	return false
}
