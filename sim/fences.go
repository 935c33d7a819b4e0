package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/stamp/ranges"
)

// Confirmed epochs (R21): in some runs each node asks the other location, and the nodes of its stamp, before it takes
// writes of accounts that have a copy, as location.confirming does. In them the link is cut with the power of a stamp, so
// that the stamp starts alone. What happens is drawn apart from everything else.

// fencedShare is how many seeds have fences.
const fencedShare = 0.4

// exchangeMax bounds an exchange, and how long one way of it takes.
const (
	exchangeMax  = time.Second
	exchangeTrip = 30 * time.Millisecond
)

// planFences draws whether a run has fences.
func (s *Sim) planFences(seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x66656e6365)); rng.Float64() < fencedShare {
		s.fences = rng
	}
}

// openFence begins what the process of a node that is about to open knows of epochs: nothing.
func (m *member) openFence() {
	s := m.l.s
	if s.fences == nil {
		return
	}
	alive := func(m *member) bool { return m.n != nil && m.killed == nil }
	if !slices.ContainsFunc(m.l.members, alive) {
		m.l.reached = false
	}
	m.fence, m.confirming, m.confirmAt = &ranges.Fence{}, confirm.New(confirm.Options{}), s.now
}

// lookAround steps the machine where that is due.
func (m *member) lookAround() {
	if m.confirming != nil && m.l.s.now >= m.confirmAt {
		m.confirmAt = m.l.s.now + confirm.LookEvery
		m.confirm(confirm.Look{})
	}
}

// confirm gives the machine an event.
func (m *member) confirm(e confirm.Event) {
	effects := m.confirming.Step(m.l.s.now, e)
	m.fence.Set(m.confirming.Held())
	for _, e := range effects {
		switch e := e.(type) {
		case confirm.Exchange:
			m.begin(func() { m.confirmed(confirm.Exchanged{Err: m.exchange()}) })
		case confirm.AskNodes:
			m.begin(func() { m.confirmed(confirm.NodesAsked{Holds: m.askNodes()}) })
		case confirm.Changed:
			m.l.s.counts.EpochsChanged++
			m.l.s.event("%s node %d: epochs confirmed by %q", m.l.name, m.id, e.Source)
		}
	}
}

// confirmed gives the machine the answer to a question, once the node is awake. It is called from a task, which dies with
// the node.
func (m *member) confirmed(e confirm.Event) {
	life := m.life
	m.whenAwake(func() {
		if m.life == life && m.killed == nil && m.n != nil {
			m.confirm(e)
		}
	})
}

// exchange asks the other location, whose catalog answers by a quorum read.
func (m *member) exchange() error {
	s, far := m.l.s, m.l.far
	err := s.task.await(exchangeMax, func(done func(error)) {
		s.after(s.fenceTrip(), func() {
			at := far.newest(geo.FirstRange(geo.Catalog))
			if err := s.callsFail(); err != nil || at == nil || at.still() {
				done(errors.Join(errLink, err))
				return
			}
			at.begin(func() {
				d := &desk{m: at}
				err := d.Read(context.Background(), geo.FirstRange(geo.Catalog), func(ranges.State) error { return nil })
				s.after(s.fenceTrip(), func() { done(errors.Join(err, s.callsFail())) })
			})
		})
	})
	if err == nil {
		m.l.reached = true
	}
	return err
}

// fenceTrip is how long a question or an answer takes.
func (s *Sim) fenceTrip() time.Duration { return time.Duration(s.fences.Int64N(int64(exchangeTrip))) }

// askNodes asks the other nodes of the stamp whether one holds the confirmation.
func (m *member) askNodes() bool {
	for _, other := range m.l.members {
		if other == m {
			continue
		}
		holds := false
		_, err := m.call(other.id, func(at *member, answer func([]byte, error)) {
			holds = at.fence.Held().Until > at.l.s.now
			answer(nil, nil)
		})
		if err == nil && holds {
			return true
		}
	}
	return false
}

// cutWithPower cuts the link when the power of a stamp has failed, in a run with fences.
func (s *Sim) cutWithPower() {
	if s.fences == nil || s.callsCut || s.busCut {
		return
	}
	s.setLink(true, true)
	s.after(time.Duration(s.fences.Int64N(int64(1500*time.Millisecond))), func() { s.setLink(false, false) })
}

// checkConfirmed checks an acknowledged write: since all nodes of the stamp were down at once, one of them has reached the
// other location.
func (s *Sim) checkConfirmed(o *op) {
	if s.fences == nil || o.l.reached || o.account == nil || o.write == nil || !o.m.n.Range(o.rangeID).Machine.Gate(o.account.name).Numbered {
		return
	}
	s.fail(fmt.Errorf("%w: write %d at %s", ErrUnconfirmed, o.id, o.l.name))
}
