package sim

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/node"
	"antipode/stamp/skew"
)

// The clock of at most one node of a location is wrong at a time, by more than the skew that all
// have: so every quorum has a right one, and no time may be far ahead of the true one, which
// is the simulator's own clock (R6).

// ErrFuture: a commit time, a closed time or Last Sync Time is ahead of the true time.
var ErrFuture = errors.New("sim: a time is ahead of the true clock")

// futureMax is how far a time may be ahead of the true one: a leader's clock may be ahead of one that
// is right by geo.ClockOffMax, and that one by skewMax.
const futureMax = geo.ClockOffMax + skewMax

// future reports whether a time is too far ahead of the true clock.
func (s *Sim) future(t geo.Timestamp) bool {
	return !s.wrongClocks && t.Time().Sub(s.clock.Now()) > futureMax
}

// stepClock sets a node's wall clock, mostly a little, at times as far as an operator or a broken time
// server does, for a while or for as long as there are faults.
func (s *Sim) stepClock(m *member) {
	s.counts.ClockStepped++
	l := m.l
	if l.wrong != nil && l.wrong != m || s.chance(0.6) {
		if l.wrong != m {
			m.clock.off = s.between(-skewMax, skewMax)
		}
		return
	}
	s.setWrong(m, s.wrongOffset())
	if s.chance(0.3) {
		return
	}
	s.after(s.between(100*time.Millisecond, 2500*time.Millisecond), func() {
		if l.wrong == m {
			s.setRight(m)
		}
	})
}

// wrongOffset draws how wrong a clock is: from a little more than is allowed to the year 2100.
func (s *Sim) wrongOffset() time.Duration {
	far := [...]time.Duration{
		geo.ClockOffMax, 2 * geo.ClockOffMax, time.Minute, 10 * time.Minute, 3 * time.Hour, 74 * 365 * 24 * time.Hour,
	}[s.rng.IntN(6)]
	off := far + s.between(0, far/2)
	if s.chance(0.3) {
		return -off
	}
	return off
}

// setWrong sets the clock of a node wrong; it stays so over restarts.
func (s *Sim) setWrong(m *member, off time.Duration) {
	s.counts.ClockJumped++
	s.event("%s node %d: clock off by %s", m.l.name, m.id, off)
	m.l.wrong, m.clock.off = m, off
}

// setRight sets the clock of a node to about the true time.
func (s *Sim) setRight(m *member) {
	if m.l.wrong == m {
		m.l.wrong = nil
		s.event("%s node %d: clock right again", m.l.name, m.id)
	}
	m.clock.off = s.between(-s.skewMax, s.skewMax)
}

// aboutClocks reports whether a batch is a message about clocks, which is always sent alone.
func aboutClocks(batch []node.Envelope) bool {
	switch batch[0].Report.(type) {
	case membership.ClockQuestion, membership.ClockAnswer:
		return true
	}
	return false
}

// sendAboutClocks carries a message about clocks under the same faults as others. It draws from a
// generator of its own and wakes nobody: what else happens under a seed, and in a scenario, does not
// depend on these messages.
func (t *network) sendAboutClocks(from, to geo.NodeID, batch []node.Envelope) {
	s := t.l.s
	d := time.Duration(t.clocks.Int64N(int64(latencyMax)))
	switch {
	case !t.carries(from, to) || t.clocks.Float64() < s.rates.netLose:
		s.counts.NetLost++
		return
	case t.clocks.Float64() < s.rates.netDelay:
		s.counts.NetDelayed++
		d = time.Duration(t.clocks.Int64N(int64(s.rates.netDelayMax)))
	}
	batch[0].From = from
	s.after(d, func() {
		if m := t.l.member(to); m.n != nil && t.carries(from, to) {
			m.n.Receive(batch)
		}
	})
}

// askFar has a node ask one of the other location for its clock.
func (t *network) askFar(m *member, done func(skew.Own, error)) {
	s, life := t.l.s, m.life
	delay := func() time.Duration { return s.lag + time.Duration(t.clocks.Int64N(int64(8*time.Millisecond))) }
	s.after(delay(), func() {
		own, err := skew.Own{}, errLink
		if far := t.l.far.members[t.clocks.IntN(len(t.l.far.members))]; far.n != nil {
			own, err = far.n.Clocks().Own(), nil
		}
		if cut := s.callsFail(); cut != nil {
			err = cut
		}
		s.after(delay(), func() {
			if m.n != nil && m.life == life {
				done(own, errors.Join(err, s.callsFail()))
			}
		})
	})
}
