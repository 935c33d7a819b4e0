package sim

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/replication/bus/membus"
)

// rates are how likely faults are, drawn for each seed: some runs have a bad
// network, some a bad stream, some crash much.
type rates struct {
	netLose, netDelay, netDouble float64
	netDelayMax                  time.Duration
	// chunkLose is per chunk and node, in a location; pushLose per chunk pushed over the
	// link; killChunk per chunk that a node takes. pullLose is per chunk pulled over the link; a
	// seed loses none of those.
	chunkLose, pushLose, killChunk, pullLose float64
	// chunkWrong is per chunk that a node asks of another.
	chunkWrong float64
	// kill is per batch of messages a node sends, killIO per write and fsync of its log and
	// extents, snapLose per step of a range snapshot.
	kill, killIO, snapLose float64
	// flush is per applied entry: the store of a node may flush at any moment
	// between two commits.
	flush float64
	// pause is the mean time between two faults of nodes, link and stream.
	pause time.Duration
}

// killAfterFlush is how likely a node dies with a flush: its state is then as far
// ahead of its log as it can be.
const killAfterFlush = 0.1

func (s *Sim) drawRates() rates {
	return rates{
		netLose: s.rng.Float64() * 0.03, netDelay: s.rng.Float64() * 0.05, netDouble: s.rng.Float64() * 0.05,
		chunkLose: s.rng.Float64() * 0.15, pushLose: s.rng.Float64() * 0.3, killChunk: s.rng.Float64() * 0.005,
		chunkWrong:  s.rng.Float64() * 0.1,
		netDelayMax: s.between(5*time.Millisecond, 80*time.Millisecond),
		kill:        s.rng.Float64() * 0.0008, killIO: s.rng.Float64() * 0.0004, snapLose: s.rng.Float64() * 0.05, flush: 0.002 + s.rng.Float64()*0.01,
		pause: s.between(60*time.Millisecond, 500*time.Millisecond),
	}
}

func (s *Sim) drawStreamRates() membus.Rates {
	return membus.Rates{
		Lose: s.rng.Float64() * 0.15, Double: s.rng.Float64() * 0.15, Swap: s.rng.Float64() * 0.2,
		Delay: s.rng.Float64() * 0.1, Release: 0.05 + s.rng.Float64()*0.2, Refuse: s.rng.Float64() * 0.02,
	}
}

// startFaults lets faults occur from now on.
func (s *Sim) startFaults() {
	s.faulty = true
	s.rates = s.drawRates()
	for _, l := range s.locations {
		l.bus.SetFaults(s.rng, s.drawStreamRates())
	}
	s.nextFault()
	s.planRecovery()
	s.startLeaps()
	s.startFolders()
}

func (s *Sim) nextFault() {
	s.after(s.between(0, 2*s.rates.pause), func() {
		if s.faulty {
			s.causeFault()
			s.nextFault()
		}
	})
}

// causeFault draws one fault and when it ends.
func (s *Sim) causeFault() {
	l := s.locations[s.rng.IntN(len(s.locations))]
	m := l.members[s.rng.IntN(len(l.members))]
	if led := l.newest(s.shipped[s.rng.IntN(len(s.shipped))]); led != nil && s.chance(0.5) {
		m = led // Faults of leaders have the most effects.
	}
	what := s.rng.IntN(30)
	if l.recovery != nil && (what < 7 || what > 9) {
		return // Its nodes have enough to do.
	}
	switch what {
	case 0, 1, 2:
		s.isolate(m)
	case 24, 25:
		s.slowDown(m)
		if s.chance(0.5) {
			s.isolate(m) // It counts in ticks, which come late: it may not notice.
		}
	case 3:
		m.stop()
	case 4, 5:
		m.crash()
	case 6:
		s.powerCut(l)
	case 7:
		s.cutLink()
	case 8:
		s.stallLink()
	case 9:
		s.event("%s stream wiped", l.name)
		l.bus.Wipe()
	case 10:
		if m.n != nil {
			m.flush()
		}
	case 11, 12:
		s.stepClock(m)
	case 13, 14:
		s.cutWay(m)
	case 15, 16:
		s.pause(m)
	case 26, 27:
		if led := l.newest(s.shipped[s.rng.IntN(len(s.shipped))]); led != nil {
			m = led // A follower's pass answers nobody.
		}
		s.stopPass(m)
	case 17:
		s.fillDisk(m)
	case 28, 29:
		s.stepDown(m)
	case 18:
		if m.n != nil && l.up() == len(l.members) {
			m.failSync = [...]string{logDir, extentsDir}[s.rng.IntN(2)]
		}
	case 19, 20:
		s.corruptChunks(m)
	default:
		s.damage(m)
	}
}

// stop ends a node in good order, with or without a flush.
func (m *member) stop() {
	if m.n != nil && !m.paused {
		m.finishPass()
	}
	if m.n == nil {
		return
	}
	s := m.l.s
	s.counts.Stopped++
	s.event("%s node %d stopped", m.l.name, m.id)
	if s.chance(0.5) {
		m.flush()
	}
	m.die(m.fs)
}

// stepDown ends a node as SIGTERM does: what it leads is to be led elsewhere first, for a while.
func (s *Sim) stepDown(m *member) {
	if m.n == nil || m.leaving() {
		return
	}
	s.counts.Drained++
	s.event("%s node %d drains", m.l.name, m.id)
	for _, id := range m.has(everyRange[:]) {
		m.n.Range(id).Leave()
	}
	m.dirty = true
	life := m.life
	s.after(s.between(50*time.Millisecond, 900*time.Millisecond), func() {
		if m.life == life {
			m.stop()
		}
	})
}

// leaving reports whether the node drains.
func (m *member) leaving() bool {
	return slices.ContainsFunc(m.has(everyRange[:]), func(id geo.RangeID) bool { return m.n.Range(id).Leaving() })
}

// crash ends a node as a power failure does.
func (m *member) crash() {
	if m.n == nil {
		return
	}
	m.l.s.counts.Crashed++
	m.l.s.event("%s node %d crashed", m.l.name, m.id)
	m.die(m.crashed())
}

// flush makes the node's applied state durable.
func (m *member) flush() {
	if err := m.n.State().Flush(); err != nil {
		m.l.s.fail(err)
	}
}

// isolate cuts a node off from its peers for a while.
func (s *Sim) isolate(m *member) {
	if m.n == nil || m.l.net.isolated[m.id] {
		return
	}
	s.counts.Isolated++
	s.event("%s node %d isolated", m.l.name, m.id)
	m.l.net.isolated[m.id] = true
	s.after(s.between(50*time.Millisecond, 900*time.Millisecond), func() { delete(m.l.net.isolated, m.id) })
}

// slowDown lets a node work only now and then for a while, like a node without processor time or
// with a slow disk: its ticks come late, its clock does not.
func (s *Sim) slowDown(m *member) {
	if m.n == nil || m.slow > 0 {
		return
	}
	s.counts.Slowed++
	m.slow = s.between(tick, 6*tick)
	s.event("%s node %d slow, by %d ms", m.l.name, m.id, m.slow.Milliseconds())
	life := m.life
	s.after(s.between(200*time.Millisecond, 1500*time.Millisecond), func() {
		if m.life == life {
			m.slow, m.restUntil = 0, 0
		}
	})
}

// cutWay lets nothing through one way between a node and a peer for a while.
func (s *Sim) cutWay(m *member) {
	w := way{m.id, m.id%geo.NodeID(len(m.l.members)) + 1}
	if s.chance(0.5) {
		w.from, w.to = w.to, w.from
	}
	s.counts.WayCut++
	s.event("%s %d>%d cut", m.l.name, w.from, w.to)
	m.l.net.cut[w] = true
	s.after(s.between(50*time.Millisecond, 900*time.Millisecond), func() { delete(m.l.net.cut, w) })
}

// pause lets a node stand still for a while, as SIGSTOP does. What is sent to it waits.
func (s *Sim) pause(m *member) {
	if m.n == nil || m.paused {
		return
	}
	s.counts.Paused++
	s.event("%s node %d paused", m.l.name, m.id)
	m.paused = true
	life := m.life
	s.after(s.between(50*time.Millisecond, 900*time.Millisecond), func() {
		if m.life == life {
			m.goOn()
		}
	})
}

// fillDisk leaves a node without room for a while.
func (s *Sim) fillDisk(m *member) {
	if m.full {
		return
	}
	s.counts.DiskFull++
	s.event("%s node %d: disk full", m.l.name, m.id)
	m.full = true
	s.after(s.between(200*time.Millisecond, time.Second), func() { m.full = false })
}

// restart starts a node again after a while.
func (s *Sim) restart(m *member) {
	life := m.life
	s.after(s.between(5*time.Millisecond, 600*time.Millisecond), func() {
		if m.life == life && m.n == nil {
			m.open()
		}
	})
}

// powerCut takes all nodes of a location at one moment.
func (s *Sim) powerCut(l *location) {
	s.counts.PowerCut++
	s.event("%s power cut", l.name)
	for _, m := range l.members {
		if m.n != nil {
			m.die(m.crashed())
		}
	}
	s.cutWithPower()
}

// cutLink lets nothing through between the locations for a while, or calls alone, or the stream alone.
func (s *Sim) cutLink() {
	if s.callsCut || s.busCut {
		return
	}
	which := s.rng.IntN(4)
	switch which {
	case 0:
		s.counts.CallsCut++
	case 1:
		s.counts.BusCut++
	default:
		s.counts.LinkCut++
	}
	s.setLink(which != 1, which != 0)
	s.after(s.between(100*time.Millisecond, 1200*time.Millisecond), func() { s.setLink(false, false) })
}

func (s *Sim) setLink(callsCut, busCut bool) {
	if callsCut != s.callsCut || busCut != s.busCut {
		s.event("link: calls cut %t, stream cut %t", callsCut, busCut)
	}
	s.callsCut, s.busCut = callsCut, busCut
	for _, l := range s.locations {
		l.bus.Cut(busCut, false)
	}
}

// stallLink makes everything over the link slow for a while.
func (s *Sim) stallLink() {
	s.counts.LinkStalled++
	s.stalled = true
	s.after(s.between(100*time.Millisecond, time.Second), func() { s.stalled = false })
}

// heal ends all faults: nodes start, the network is honest, the stream loses nothing.
func (s *Sim) heal() {
	if s.err != nil {
		return
	}
	s.event("heal")
	s.faulty, s.stalled = false, false
	s.rates = rates{}
	s.setLink(false, false)
	s.third.heal()
	s.endLeaps()
	for _, l := range s.locations {
		clear(l.net.isolated)
		clear(l.net.cut)
		s.takeStreamCounts(l.bus.Counts())
		l.bus.SetFaults(nil, membus.Rates{})
		l.bus.Release(-1)
		for _, m := range l.members {
			m.full, m.failSync, m.slow, m.restUntil, m.seams = false, "", 0, 0, 0
			s.setRight(m)
			m.goOn()
			if m.n != nil && m.leaving() {
				m.stop()
			}
			if m.n == nil {
				m.open()
			}
		}
		for id, h := range l.history {
			l.healed[id] = h.m.last
		}
		if s.sweeps {
			l.sweep() // Rows that came late are looked for.
		}
	}
}

// takeStreamCounts adds what a bus did. A delayed message that was released
// came after later ones, as a swapped one does.
func (s *Sim) takeStreamCounts(c membus.Counts) {
	s.counts.StreamLost += c.Lost
	s.counts.StreamDoubled += c.Doubled
	s.counts.StreamReordered += c.Swapped + c.Released
	s.counts.StreamDelayed += c.Delayed
	s.counts.StreamRefused += c.Refused
	s.counts.StreamWiped += c.Wiped
}

// chance draws one event of the given rate.
func (s *Sim) chance(rate float64) bool { return rate > 0 && s.rng.Float64() < rate }

// between draws a duration, lo included and hi not.
func (s *Sim) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)))
}
