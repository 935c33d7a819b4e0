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
	"antipode/stamp/change"
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

// planFences draws whether a run has fences, and whether its clocks leap.
func (s *Sim) planFences(seed uint64) {
	s.planLeaps(seed)
	if rng := rand.New(rand.NewPCG(seed, 0x66656e6365)); rng.Float64() < fencedShare || s.third != nil {
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
		m.l.allDown()
	}
	m.learned = map[geo.Account]bool{}
	o := confirm.Options{}
	if s.third != nil {
		o = confirm.Options{Witness: true, Retry: thirdRetry}
	}
	m.fence, m.confirming, m.confirmAt = &ranges.Fence{}, confirm.New(o), s.now
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
			m.begin(func() { m.confirmed(m.exchange()) })
		case confirm.AskNodes:
			m.begin(func() { m.confirmed(m.askNodes()) })
		case confirm.Renew:
			m.begin(func() {
				m.confirmed(m.renew(e.After))
				m.release()
			})
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

// exchange asks the other location for higher epochs of the accounts that are primary here; its catalog answers by a
// quorum read.
func (m *member) exchange() confirm.Exchanged {
	s, far := m.l.s, m.l.far
	own, err := m.own()
	if err != nil {
		return confirm.Exchanged{Err: err}
	}
	var above confirm.Epochs
	var begun time.Duration
	err = s.task.await(exchangeMax, func(done func(error)) {
		s.after(s.fenceTrip(), func() {
			at := far.newest(geo.FirstRange(geo.Catalog))
			if err := s.callsFail(); err != nil || at == nil || at.stands() {
				done(errors.Join(errLink, err))
				return
			}
			at.begin(func() {
				begun = s.now
				higher, err := at.higher(own)
				above = higher
				s.after(s.fenceTrip(), func() { done(errors.Join(err, s.callsFail())) })
			})
		})
	})
	if err == nil {
		m.l.reached = m.l.reached || s.third == nil
		m.learns(own, begun)
	}
	return confirm.Exchanged{Above: above, Err: err}
}

// renew asks the witness for a lease.
func (m *member) renew(after uint64) confirm.Renewed {
	g, err := m.witness().Renew(context.Background(), after)
	m.l.reached = m.l.reached || err == nil
	return confirm.Renewed{Grant: g, Err: err}
}

// release has the witness forget claims that are over, as location.Location does.
func (m *member) release() {
	if m.desk == nil || m.killed != nil || m.l.newest(geo.FirstRange(geo.Catalog)) != m {
		return
	}
	if err := m.desk.directory.Promoter().ReleaseClaims(context.Background(), m.confirming.Claims()); err != nil {
		m.l.s.event("%s node %d: claims that are over stay: %v", m.l.name, m.id, err)
	}
}

// own are the epochs of the accounts that are primary here: see location.confirming.exchange.
func (m *member) own() (confirm.Epochs, error) {
	if m.desk == nil {
		return nil, nil
	}
	return m.desk.directory.Own(context.Background())
}

// higher answers such a question.
func (m *member) higher(of confirm.Epochs) (confirm.Epochs, error) {
	if m.desk == nil {
		d := &desk{m: m}
		return nil, d.Read(context.Background(), geo.FirstRange(geo.Catalog), func(ranges.State) error { return nil })
	}
	return m.desk.directory.Higher(context.Background(), of)
}

// learns records of which promotions an answer knows that was read after a time.
func (m *member) learns(asked confirm.Epochs, read time.Duration) {
	for _, a := range m.l.s.accounts {
		if e, ok := asked[a.name]; ok && a.fork != nil && a.fork.from == m.l && a.fork.at < read && e.Compare(a.epoch) < 0 {
			m.learned[a.name] = true
		}
	}
}

// fenceTrip is how long a question or an answer takes.
func (s *Sim) fenceTrip() time.Duration { return time.Duration(s.fences.Int64N(int64(exchangeTrip))) }

// askNodes asks the other nodes of the stamp whether one holds the confirmation.
func (m *member) askNodes() (answer confirm.NodesAsked) {
	for _, other := range m.l.members {
		if other == m {
			continue
		}
		var held ranges.Confirmed
		_, err := m.call(other.id, func(at *member, answer func([]byte, error)) {
			held = at.fence.Held()
			answer(nil, nil)
		})
		if err == nil && held.Until > m.l.s.now {
			return confirm.NodesAsked{Holds: true, Above: held.Above}
		}
	}
	return confirm.NodesAsked{}
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
// other location, or the witness if there is one. What counts is the gate behind which the write is in the log, not that of
// the moment of the answer. One pass may apply a write and the gate that follows it, as where an account gets a copy. A
// write before that gate is in the image that begins with it, and so in every copy that can be promoted: it needs no
// confirmation. One behind a gate of an account with a copy needs it, even if the copy is gone when the answer is given.
func (s *Sim) checkConfirmed(o *op) {
	if s.fences == nil || o.l.reached || o.account == nil || o.write == nil || !o.fenced {
		return
	}
	s.fail(fmt.Errorf("%w: write %d at %s", ErrUnconfirmed, o.id, o.l.name))
}

// refusedAtRest returns which leader refuses writes of an account whose primary it is, "" for none: once there are no faults
// any more nothing may keep it from them, a claim that has no effect neither.
func (s *Sim) refusedAtRest(a *account) string {
	if s.third == nil {
		return ""
	}
	for _, id := range s.shipped {
		m := a.home.newest(id)
		if m == nil || !m.fence.Confirms(a.name, change.Gate{Epoch: a.epoch}, s.now) {
			return fmt.Sprintf("r%d at %s refuses writes of %s in epoch %s", id, a.home.name, a.name, a.epoch)
		}
	}
	return ""
}
