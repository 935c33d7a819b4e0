package sim

import (
	"iter"
	"math/rand/v2"
	"time"
)

// passing is a scheduler pass that takes its time, or stands still in the middle while all others continue, like
// a pass whose process or goroutine gets no processor. It runs as a coroutine.
//
//	armed ──next pass──> running ──seam drawn──> still ──goOn──> running ──end of the pass
//	                     running ──log or state──> works ──time──> running
//
// The seams are where a pass holds no lock: right after it read a clock, and where it passes
// messages to the network. It works where it writes and syncs the log, and where it has applied entries: see passCosts.
type passing struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	// still means that it stands at a seam, or works. turn counts how often it did.
	still, works bool
	turn         int
	// abandoned means that its node is gone, so that the
	// rest of the pass has no effect.
	abandoned bool
	// stood is when it stood still first, zero if it never did.
	stood time.Duration
}

// decides is since when what the node answers now may have been decided: a pass that stood still may have read the clock
// before that, and its answer is as late as one on a slow network.
func (m *member) decides() time.Duration {
	if p := m.passing; p != nil && p.stood > 0 {
		return p.stood
	}
	return m.l.s.now
}

// seamsMax bounds how many seams are passed before a pass stands still.
const seamsMax = 8

// stopPass makes the node stand still at a seam of the passes to come, for a while: half of
// the time at the first, where a pass has just read the clock. Mostly its scheduler alone
// stands still: its peers' messages and its clients' requests still get in.
func (s *Sim) stopPass(m *member) {
	if m.n == nil || m.paused || m.passing != nil && !m.passing.works || m.seams > 0 {
		return
	}
	m.seams = 1
	if s.chance(0.5) {
		m.seams += s.rng.IntN(seamsMax)
	}
	m.stopFor = s.between(50*time.Millisecond, 1200*time.Millisecond)
	m.stopWhole = s.chance(0.3)
}

// passCosts draws how long the parts of a pass take while there are faults, apart from everything else. Mostly that is a
// fraction of a millisecond, at times some, and now and then as long as a disk stalls: longer than a lease, or than an
// election takes.
type passCosts struct {
	rng *rand.Rand
	// slow and stall are how likely a part takes some milliseconds, or stalls.
	slow, stall float64
}

// A part of a pass that is slow takes slowMax at most, and stallMax is about the longest stall of a disk.
const (
	slowMax  = 5 * time.Millisecond
	stallMax = 600 * time.Millisecond
)

// planCosts draws the costs of a run.
func (s *Sim) planCosts(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x70617373))
	s.costs = &passCosts{rng: rng, slow: rng.Float64() * 0.1, stall: rng.Float64() * 0.002}
}

// part draws how long a part of a pass takes, zero for most writes, which meet the page cache.
func (c *passCosts) part(synced bool) time.Duration {
	within := func(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }
	switch at := c.rng.Float64(); {
	case at < c.stall:
		return 4*slowMax + within(stallMax)
	case at < c.stall+c.slow:
		return within(slowMax)
	case !synced && at < 0.7:
		return 0
	}
	return within(300 * time.Microsecond)
}

// takesTime has the pass of the node take a while here. It holds no lock.
func (m *member) takesTime(synced bool) {
	p, s := m.passing, m.l.s
	if s.costs == nil || !s.faulty || p == nil || p.still || p.abandoned || m.killed != nil {
		return
	}
	d := s.costs.part(synced)
	if d > slowMax && m.l.recovery != nil {
		d = slowMax // Its nodes must be able to reach the survivor before they reach each other, within an election timeout.
	}
	if d == 0 {
		return
	}
	s.counts.PassTook++
	if d > slowMax {
		s.counts.PassStalled++
		s.event("%s node %d stalls in a pass", m.l.name, m.id)
	}
	p.still, p.works = true, true
	p.turn++
	turn := p.turn
	s.after(d, func() {
		if m.passing == p && p.still && p.turn == turn && !m.paused { // Else goOn resumes it.
			m.dirty = true
			m.resume(p)
		}
	})
	p.yield(struct{}{})
}

// pass lets the node work until it has nothing left to do, or died in between, or stands
// still.
func (m *member) pass() {
	if m.seams == 0 && (m.l.s.costs == nil || !m.l.s.faulty) {
		m.passes(nil)
		return
	}
	p := &passing{}
	p.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		m.passes(p)
	})
	m.passing = p
	m.resume(p)
}

// resume runs the pass up to the next seam at which it stands still, or to its end.
func (m *member) resume(p *passing) {
	p.still, p.works = false, false
	if _, more := p.next(); !more {
		m.passing = nil
	}
}

// seam is where a pass may stand still.
func (m *member) seam() {
	p := m.passing
	if p == nil || p.still || p.abandoned || m.seams == 0 {
		return
	}
	if m.seams--; m.seams > 0 {
		return
	}
	s := m.l.s
	s.counts.PassStopped++
	s.event("%s node %d stands still in a pass, whole %t", m.l.name, m.id, m.stopWhole)
	p.still = true
	p.turn++
	if p.stood == 0 {
		p.stood = s.now
	}
	m.paused = m.stopWhole
	s.after(m.stopFor, func() {
		if m.passing == p {
			m.goOn()
		}
	})
	p.yield(struct{}{})
}

// finishPass lets a pass that takes its time come to its end, before the node ends in good order.
func (m *member) finishPass() {
	for p := m.passing; p != nil && m.passing == p && p.still; {
		m.resume(p)
	}
}

// abandonPass ends a pass of a node that is gone.
func (m *member) abandonPass() {
	p := m.passing
	if p == nil || !p.still {
		return // None, or it is the one that found that the node is gone.
	}
	p.abandoned = true
	if m.killed == nil {
		m.killed = m.fs // Answers and effects from now on are lost.
	}
	m.resume(p)
}

// still reports whether it begins nothing: it stands, or its scheduler works in a pass.
func (m *member) still() bool { return m.paused || m.passing != nil && m.passing.still }

// stands reports whether it gets nothing done: it is paused, or its scheduler stands still.
func (m *member) stands() bool { return m.still() && (m.paused || !m.passing.works) }

// goOn ends a pause.
func (m *member) goOn() {
	m.paused, m.dirty = false, true
	if p := m.passing; p != nil && p.still {
		m.resume(p)
	}
	asked := m.asked
	m.asked = nil
	for _, f := range asked {
		f()
	}
}

// whenAwake asks the node for something, now or when it no longer stands still.
func (m *member) whenAwake(f func()) {
	if m.paused {
		m.asked = append(m.asked, f)
		return
	}
	f()
}
