package sim

import (
	"iter"
	"time"
)

// passing is a scheduler pass that may stand still in the middle while all others continue, like
// a pass whose process or goroutine gets no processor. It runs as a coroutine.
//
//	armed ──next pass──> running ──seam drawn──> still ──goOn──> running ──end of the pass
//
// The seams are where a pass holds no lock: right after it read a clock, and where it passes
// messages to the network.
type passing struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	// still means that it stands at a seam; abandoned means that its node is gone, so that the
	// rest of the pass has no effect.
	still, abandoned bool
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
	if m.n == nil || m.paused || m.passing != nil || m.seams > 0 {
		return
	}
	m.seams = 1
	if s.chance(0.5) {
		m.seams += s.rng.IntN(seamsMax)
	}
	m.stopFor = s.between(50*time.Millisecond, 1200*time.Millisecond)
	m.stopWhole = s.chance(0.3)
}

// pass lets the node work until it has nothing left to do, or died in between, or stands
// still.
func (m *member) pass() {
	if m.seams == 0 {
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
	p.still = false
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

// still reports whether it gets nothing done: it is paused, or its scheduler stands still.
func (m *member) still() bool { return m.paused || m.passing != nil && m.passing.still }

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
