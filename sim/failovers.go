package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
)

// Planned moves of primaries while clients write (R19), for which operators ask; the nodes carry them out: see desk. They
// are drawn apart from everything else, so that runs without them stay as they are.

const (
	// failoverShare is how many of the seeds with changes of redundancy, and without a recovery with a loss, have moves of
	// primaries; failoversMax is how many an account has at most.
	failoverShare = 0.8
	failoversMax  = 4
	// hurriedShare is how many moves have little time, endedShare how many an operator ends.
	hurriedShare = 0.35
	endedShare   = 0.2
	// doubtedShare is how many moves an operator ends as soon as the account is offered, at most doubtedMax later.
	doubtedShare = 0.4
	doubtedMax   = 30 * time.Millisecond
)

// planFailovers draws whether a run has moves of primaries.
func (s *Sim) planFailovers(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x6661696c6f766572))
	if (rng.Float64() < failoverShare || s.doubts || s.promotes) && !s.losing {
		s.failovers = rng
		s.planPromotions(seed)
	}
}

// startFailovers lets operators move primaries from now on.
func (s *Sim) startFailovers() {
	if s.recovers {
		s.failovers = nil
	}
	rng := s.failovers
	if rng == nil {
		return
	}
	for _, a := range s.accounts {
		at := make([]time.Duration, rng.IntN(failoversMax+1))
		for i := range at {
			at[i] = s.now + time.Duration(rng.Int64N(int64(faultPhase*18/20)))
		}
		slices.Sort(at)
		s.nextFailover(a, at)
	}
}

// nextFailover asks for the moves of an account one after the other, none before its time.
func (s *Sim) nextFailover(a *account, at []time.Duration) {
	if len(at) == 0 {
		return
	}
	s.after(max(0, at[0]-s.now), func() {
		within := 2*time.Second + time.Duration(s.failovers.Int64N(int64(8*time.Second)))
		if s.failovers.Float64() < hurriedShare {
			within = 20*time.Millisecond + time.Duration(s.failovers.Int64N(int64(400*time.Millisecond)))
		}
		s.failover(a, within, func() { s.nextFailover(a, at[1:]) })
	})
}

// failover has an operator ask for a move until it is taken, while there are faults.
func (s *Sim) failover(a *account, within time.Duration, done func()) {
	again := func() { s.after(operatorPause, func() { s.failover(a, within, done) }) }
	if !s.faulty {
		return
	}
	at := a.home
	m := at.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() {
		again()
		return
	}
	m.begin(func() {
		_, err := m.desk.directory.Mover().Move(context.Background(), a.name, within)
		s.event("%s: asked for a move within %s: %v", a.name, within, err)
		if err != nil {
			again()
			return
		}
		if s.failovers.Float64() < endedShare {
			s.after(time.Duration(s.failovers.Int64N(int64(600*time.Millisecond))), func() { s.endFailover(a, at) })
		}
		a.doubted = s.failovers.Float64() < doubtedShare || s.doubts
		done()
	})
}

// doubt has an operator end a move that has just offered the account, if one wants to.
func (s *Sim) doubt(a *account, rec *catalog.Account) {
	if a.doubted && rec.Offered() {
		a.doubted = false
		at := a.home
		s.after(time.Duration(s.failovers.Int64N(int64(doubtedMax))), func() { s.endFailover(a, at) })
	}
}

// endFailover has an operator end a move from where it began: the other location may have taken the account since.
func (s *Sim) endFailover(a *account, at *location) {
	m := at.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() {
		return
	}
	m.begin(func() {
		_, err := m.desk.directory.Mover().EndMove(context.Background(), a.name)
		s.event("%s: asked for the end of a move: %v", a.name, err)
	})
}

// countFailover counts the moves that end without effect.
func (s *Sim) countFailover(was, now *catalog.Account) {
	ending := func(a *catalog.Account) bool { return a.Moves() && a.Operation.Move.Phase == catalog.MoveEnding }
	if !ending(was) && ending(now) {
		s.counts.MoveEnded++
		if was.Offered() {
			s.counts.MoveRefused++
		}
	}
}
