package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
)

// Unplanned failovers while clients write (R20), for which operators ask at the secondary, whatever has become of the
// primary; the nodes carry them out: see desk. What they leave behind is said in forks.go. They are drawn apart from
// everything else.

const (
	// promotionShare is how many of the seeds with planned moves have unplanned ones, too; promotionsMax is how many an
	// account has at most.
	promotionShare = 0.6
	promotionsMax  = 3
	// cancelledShare is how many promotions an operator ends, at most cancelledMax after they began.
	cancelledShare = 0.25
	cancelledMax   = 800 * time.Millisecond
	// alonePart is how often the primary cannot reach the witness then, either, if there is one.
	alonePart = 0.5
	// plightMax is how long what has become of the primary lasts.
	plightMax = 1500 * time.Millisecond
	// rebuiltShare is how many copies that have diverged an operator has made again while there are faults, at most
	// rebuiltMax later. The others are made again after the faults: see mend.
	rebuiltShare = 0.6
	rebuiltMax   = 500 * time.Millisecond
)

// planPromotions draws whether a run has unplanned failovers.
func (s *Sim) planPromotions(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x70726f6d6f7465))
	if s.failovers != nil && !s.doubts && rng.Float64() < promotionShare || s.promotes {
		s.promotions = rng
		s.promotionTimes = unplanned.Times{
			Within: [...]time.Duration{700 * time.Millisecond, 2 * time.Second, 4 * time.Second}[rng.IntN(3)],
			Quiet:  60 * time.Millisecond, Most: 400 * time.Millisecond,
		}
	}
	s.planThird(seed)
}

// startPromotions lets operators promote secondaries from now on.
func (s *Sim) startPromotions() {
	if s.recovers {
		s.promotions = nil
	}
	rng := s.promotions
	if rng == nil {
		return
	}
	for _, a := range s.accounts {
		at := make([]time.Duration, rng.IntN(promotionsMax+1))
		for i := range at {
			at[i] = s.now + time.Duration(rng.Int64N(int64(faultPhase*17/20)))
		}
		slices.Sort(at)
		s.nextPromotion(a, at)
	}
}

// nextPromotion asks for the promotions of an account one after the other, none before its time.
func (s *Sim) nextPromotion(a *account, at []time.Duration) {
	if len(at) == 0 {
		return
	}
	s.after(max(0, at[0]-s.now), func() {
		s.befalls(a.home)
		s.after(time.Duration(s.promotions.Int64N(int64(300*time.Millisecond))), func() {
			s.promote(a, func() { s.nextPromotion(a, at[1:]) })
		})
	})
}

// befalls draws what has become of the primary of an account that is promoted.
func (s *Sim) befalls(l *location) {
	if !s.faulty {
		return
	}
	lasts := plightMax/5 + time.Duration(s.promotions.Int64N(int64(plightMax)))
	if s.third != nil && s.third.rng.Float64() < alonePart {
		s.third.cutOff(lasts, l.name)
	}
	switch s.promotions.IntN(8) {
	case 0:
		s.outage(l, lasts)
	case 1:
		s.standstill(l, lasts)
	case 2, 3:
		s.cutFor(true, true, lasts)
	case 4:
		calls := s.promotions.IntN(2) == 0
		s.cutFor(calls, !calls, lasts)
	}
}

// outage takes the power of all nodes of a location for a while.
func (s *Sim) outage(l *location, lasts time.Duration) {
	s.counts.PowerCut++
	s.event("%s is down for %d ms", l.name, lasts.Milliseconds())
	for _, m := range l.members {
		if m.n != nil {
			m.abandon()
		}
		life := m.life
		s.after(lasts+time.Duration(s.promotions.Int64N(int64(200*time.Millisecond))), func() {
			if m.n == nil && m.life == life {
				m.open()
			}
		})
	}
}

// standstill has all nodes of a location stand still for a while.
func (s *Sim) standstill(l *location, lasts time.Duration) {
	s.event("%s stands still for %d ms", l.name, lasts.Milliseconds())
	for _, m := range l.members {
		if m.n == nil || m.paused {
			continue
		}
		s.counts.Paused++
		m.paused = true
		life := m.life
		s.after(lasts, func() {
			if m.life == life {
				m.goOn()
			}
		})
	}
}

// cutFor cuts the link, or a half of it, for a while.
func (s *Sim) cutFor(calls, stream bool, lasts time.Duration) {
	if s.callsCut || s.busCut {
		return
	}
	s.setLink(calls, stream)
	s.after(lasts, func() { s.setLink(false, false) })
}

// promote has an operator ask for a promotion until it is taken, while there are faults.
func (s *Sim) promote(a *account, done func()) {
	again := func() { s.after(operatorPause, func() { s.promote(a, done) }) }
	if !s.faulty {
		return
	}
	at := a.home.far
	m := at.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() || !at.knowsContainers(a) {
		again()
		return
	}
	m.begin(func() {
		ask := m.desk.directory.Promoter().Promote
		if s.third != nil && s.promotions.Float64() < unwitnessedShare {
			ask = m.desk.directory.Promoter().PromoteWithoutWitness
		}
		_, err := ask(context.Background(), a.name)
		s.event("%s: asked for a promotion at %s: %v", a.name, at.name, err)
		if err != nil {
			again()
			return
		}
		if s.promotions.Float64() < cancelledShare {
			s.after(time.Duration(s.promotions.Int64N(int64(cancelledMax))), func() { s.endPromotion(a, at) })
		}
		done()
	})
}

// knowsContainers reports whether a location has a container of each service of an account, which clients then go on with.
func (l *location) knowsContainers(a *account) bool {
	rows := l.history[geo.FirstRange(geo.Catalog)].m.parts
	for _, svc := range l.s.used {
		known := slices.ContainsFunc(a.containers[svc], func(c *container) bool {
			return rows[string(catalog.ContainerPartition(svc, a.name, c.name).Append(nil))][""] != ""
		})
		if !known {
			return false
		}
	}
	return true
}

// endPromotion has an operator end a promotion.
func (s *Sim) endPromotion(a *account, at *location) {
	m := at.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() {
		return
	}
	m.begin(func() {
		ok, err := m.desk.directory.Promoter().EndPromotion(context.Background(), a.name)
		s.event("%s: asked for the end of a promotion: %t, %v", a.name, ok, err)
	})
}

// diverges has an operator make the copy of an account again whose former primary has diverged, if one does before the
// faults end.
func (s *Sim) diverges(a *account, was, now *catalog.Account) {
	if s.promotions == nil || !diverged(now) || diverged(was) || s.promotions.Float64() >= rebuiltShare {
		return
	}
	s.after(time.Duration(s.promotions.Int64N(int64(rebuiltMax))), func() {
		if !a.mended && s.faulty {
			a.mended = true
			s.operate(a, move{}, func() { a.mended = false })
		}
	})
}

// diverged reports whether, by the record of an account, its former primary has diverged.
func diverged(a *catalog.Account) bool { return a != nil && a.Operation != nil && a.Operation.Diverged }
