package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/queues"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// hidden is when a client got a message, and for how long it is hidden from all others.
type hidden struct {
	// asked is the earliest time of the get, answered the latest.
	asked, answered, timeout time.Duration
	forks                    int
	// q is its queue, until is from when on it is visible again by the times of its range.
	q     queues.Queue
	until geo.Timestamp
	// got is how often the message was got, this time included.
	got uint32
}

// checkHidden: no message is got by two consumers within its timeout, by the simulation's own time, as far as the clocks of the
// nodes are right (Q2). A promotion may lose the first of them, and so may a recovery: see loseHidden.
//
// Answers may arrive in another order than the gets were committed: a call gets from one subqueue after the other, and
// the message that it got first may be got again while it waits for the second. The count of gets, which each get
// raises by one, gives the order. A count that went back is found all the same: the get that is taken for the first one
// was asked for after the answer of the other one then, so it hid the message until after that answer.
func (s *Sim) checkHidden(a *account, id queues.MessageID, now hidden) {
	was, known := a.hidden[id]
	if now.answered = s.now; known && was.forks == now.forks && now.got < was.got {
		was, now = now, was
	}
	a.hidden[id] = now
	if !known || was.forks != a.forks || s.wrongClocks || s.locations[0].wrong != nil || s.locations[1].wrong != nil {
		return
	}
	s.counts.QueueHiddenChecked++
	if early := was.asked + was.timeout - 2*s.skewMax - now.answered; early > 0 {
		s.fail(fmt.Errorf("%w: %s of %s, hidden for %s, is got again %s early", ErrGotTwice, id, a.name, was.timeout, early))
	}
}

// loseHidden forgets the messages that clients got from a range which was recovered without that: these are got again. Those
// whose hiding the range has kept stay hidden.
func (h *history) loseHidden() {
	for _, a := range h.s.accounts {
		if h.svc != geo.Queue || a.home != h.l {
			continue
		}
		for id, was := range a.hidden {
			h.s.counts.QueueHidingKept++
			if m, is := h.message(was.q, id); is && m.Visible < was.until {
				delete(a.hidden, id)
				h.s.counts.QueueHidingKept--
				h.s.counts.QueueHidingLost++
			}
		}
	}
}

// message looks for a message in all subqueues of a queue.
func (h *history) message(q queues.Queue, id queues.MessageID) (queues.Message, bool) {
	prefix := string(keys.AppendContainer(nil, geo.Queue, q.Account, q.Name, q.Generation))
	for part, rows := range h.m.parts {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil || !strings.HasPrefix(part, prefix) || p.Object == "" {
			continue
		}
		c, err := contents(p.Object, rows)
		if err != nil {
			h.s.fail(err)
			return queues.Message{}, false
		}
		if m, is := c.Messages[id]; is {
			return m, true
		}
	}
	return queues.Message{}, false
}

// checkQueue checks a change of a queue on the state before it. All changes of a queue are on one lane (Q23); a change of
// a subqueue keeps its invariants, and every message in it that the change is not about (Q1, Q2, Q6, Q7, Q14, Q20), and a change
// of a dictionary drops no message (Q12 to Q14).
func (h *history) checkQueue(r *change.Record) {
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		h.s.fail(err)
		return
	}
	if h.svc != geo.Queue || keptAside(p.Account) {
		return
	}
	lane, q := r.Stream().Lane, string(keys.AppendContainer(nil, p.Service, p.Account, p.Container, p.Generation))
	if known, is := h.lanes[q]; is && known != lane {
		h.fail(ErrQueue, "changes of %s are on lanes %d and %d", p.Container, known, lane)
	}
	h.lanes[q] = lane
	h.s.counts.QueueChecked++
	var w services.Write
	for _, o := range r.Ops {
		if string(o.Row) != lastRowOf(h.svc) {
			continue
		}
		if id, _, err := parseLast(string(o.Value)); err == nil {
			w = h.s.ops[id].write
		}
	}
	next := &model{parts: map[string]map[string]string{string(r.Partition): maps.Clone(h.m.parts[string(r.Partition)])}}
	if next.parts[string(r.Partition)] == nil {
		next = newModel()
	}
	next.set(r)
	before, after := h.m.parts[string(r.Partition)], next.parts[string(r.Partition)]
	if p.Object == "" {
		err = h.checkDictionary(queues.Queue{Account: p.Account, Name: p.Container, Generation: p.Generation}, before, after)
	} else {
		err = checkSubqueue(p.Object, before, after, r.CommitTime, w)
	}
	if err != nil {
		h.fail(ErrQueue, "%s of %s at %d, by %T: %v", p.Container, p.Account, r.CommitTime, w, err)
	}
}

// contents reads a subqueue out of the rows of its partition.
func contents(object string, rows map[string]string) (*queues.Contents, error) {
	var id queues.SubqueueID
	if err := id.UnmarshalText([]byte(object)); err != nil {
		return nil, err
	}
	rows = maps.Clone(rows)
	delete(rows, lastRowOf(geo.Queue))
	return queues.ReadContents(rows, id)
}

// checkSubqueue checks a change of a subqueue by a write.
func checkSubqueue(object string, rowsBefore, rowsAfter map[string]string, at geo.Timestamp, w services.Write) error {
	before, err := contents(object, rowsBefore)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	after, err := contents(object, rowsAfter)
	if err != nil {
		return err
	}
	about := queues.MessageID{}
	if named, is := w.(interface{ MessageID() queues.MessageID }); is {
		about = named.MessageID()
	}
	for id, m := range before.Messages {
		now, stays := after.Messages[id]
		_, deletes := w.(*queues.Delete)
		_, updates := w.(*queues.Update)
		get, gets := w.(*queues.Get)
		switch {
		case !stays && before.State != queues.StateToBeDeleted && (m.Expires == 0 || m.Expires > at) && (!deletes || id != about):
			return fmt.Errorf("message %s is gone", id)
		case !stays || now.Visible == m.Visible && now.DequeueCount == m.DequeueCount && bytes.Equal(now.Text, m.Text):
		case updates && id == about && now.DequeueCount == m.DequeueCount && now.Expires == m.Expires:
		case !gets || now.DequeueCount != m.DequeueCount+1 || !bytes.Equal(now.Text, m.Text) || now.Expires != m.Expires:
			return fmt.Errorf("message %s was changed: %+v, now %+v", id, m, now)
		case m.Visible > at || now.Visible < at+geo.Timestamp(get.Timeout/100) || m.Expires != 0 && m.Expires <= at:
			return fmt.Errorf("message %s is got at %d, visible from %d, then %d, expires %d", id, at, m.Visible, now.Visible, m.Expires)
		}
	}
	for id := range after.Messages {
		put, puts := w.(*queues.Put)
		if _, was := before.Messages[id]; !was && (!puts || put.ID != id || before.State != queues.StateAll) {
			return fmt.Errorf("message %s is new, in state %d", id, before.State)
		}
	}
	if after.State < before.State {
		return fmt.Errorf("state %d after %d", after.State, before.State)
	}
	return nil
}

// checkDictionary checks a change of a queue's dictionary: only a Clear, which brings a new subqueue, may have messages
// deleted, and what leaves the dictionary has none and is closed.
func (h *history) checkDictionary(q queues.Queue, rowsBefore, rowsAfter map[string]string) error {
	read := func(rows map[string]string) (*queues.Dictionary, map[queues.SubqueueID]queues.State, error) {
		d, err := queues.ReadDictionary(partitionRows{q.DictionaryPartition(), rows}, q)
		states := map[queues.SubqueueID]queues.State{}
		if err == nil {
			for _, e := range d.Subqueues {
				states[e.ID] = e.State
			}
		}
		return d, states, err
	}
	dBefore, before, errBefore := read(rowsBefore)
	dAfter, after, errAfter := read(rowsAfter) // One takes messages, or it is an error.
	if err := errors.Join(errBefore, errAfter); err != nil {
		return err
	}
	if dAfter.Number != dBefore.Number+1 {
		return fmt.Errorf("number %d after %d", dAfter.Number, dBefore.Number)
	}
	clears := false
	for _, e := range dAfter.Subqueues {
		_, was := before[e.ID]
		clears = clears || !was
		if c, err := h.subqueue(q, e.ID); err != nil || c.State == 0 {
			return fmt.Errorf("subqueue %s is in the dictionary before it is open: %w", e.ID, err)
		}
	}
	for _, e := range dBefore.Subqueues {
		state, stays := after[e.ID]
		c, err := h.subqueue(q, e.ID)
		switch {
		case err != nil:
			return err
		case !stays && (c.State != queues.StateToBeDeleted || len(c.Messages) > 0):
			return fmt.Errorf("subqueue %s leaves in state %d with %d messages", e.ID, c.State, len(c.Messages))
		case stays && state == queues.StateToBeDeleted && e.State != state && !clears && (len(c.Messages) > 0 || c.State == queues.StateAll):
			return fmt.Errorf("subqueue %s is removed in state %d with %d messages", e.ID, c.State, len(c.Messages))
		case stays && state < e.State:
			return fmt.Errorf("subqueue %s is in state %d after %d", e.ID, state, e.State)
		}
	}
	return nil
}

// subqueue is a subqueue as the log has it.
func (h *history) subqueue(q queues.Queue, id queues.SubqueueID) (*queues.Contents, error) {
	at := queues.Subqueue{Queue: q, ID: id}
	return contents(at.ID.String(), h.m.parts[string(at.Partition().Append(nil))])
}

// emptyQueues gets the messages of all queues once the faults are over and nothing is hidden any more: each that the state has
// is delivered, and none twice; the count is theirs (Q1, Q6).
func (s *Sim) emptyQueues() {
	if s.queues == nil || s.err != nil {
		return
	}
	s.runFor(hideMax + 2*s.skewMax + time.Second)
	for _, a := range s.accounts {
		for _, c := range slices.Clone(a.containers[geo.Queue]) {
			if s.err == nil && c.deletion < 0 {
				s.emptyQueue(a, c)
			}
		}
	}
}

// emptying is how far the getting of all messages of a queue is.
type emptying struct {
	got     map[queues.MessageID]bool
	count   uint64
	counted bool
	// busy: a call is under way. over: nothing is left. unknown: a call may have hidden messages that nobody got.
	busy, over, unknown bool
}

func (s *Sim) emptyQueue(a *account, c *container) {
	e := &emptying{got: map[queues.MessageID]bool{}}
	id := geo.FirstRange(geo.Queue)
	forks, moved := a.forks, a.moved
	if !s.runUntil(drainMax, func() bool {
		m := a.home.newest(id)
		if e.over || e.unknown || e.busy || m == nil || m.stands() {
			return e.over || e.unknown
		}
		e.busy = true
		m.begin(func() {
			defer func() { e.busy = false }()
			e.step(s, m, a, queueOf(c))
		})
		return false
	}) {
		s.fail(fmt.Errorf("%w: queue %s of %s is not emptied", ErrDrain, c.name, a.name))
		return
	}
	if e.unknown || forks != a.forks || moved != a.moved || s.wrongClocks { // A clock that was ahead hides messages for longer.
		return
	}
	s.counts.QueueEmptied++
	n, err := a.home.history[id].undelivered(queueOf(c), e.got, geo.TimestampOf(s.clock.Now().Add(-2*s.skewMax)))
	if err != nil {
		s.fail(fmt.Errorf("%w: %s of %s: %w", ErrUndelivered, c.name, a.name, err))
	}
	if uint64(n) > e.count {
		s.fail(fmt.Errorf("%w: %s of %s has %d messages, the count was %d", ErrUndelivered, c.name, a.name, n, e.count))
	}
}

// step counts the messages, or gets some of them.
func (e *emptying) step(s *Sim, m *member, a *account, q queues.Queue) {
	t := s.task
	if !e.counted {
		n, err := m.messages.Count(context.Background(), &desk{m: m}, q)
		e.count, e.counted = n, err == nil && !t.gone
		return
	}
	ms, err := m.messages.Get(context.Background(), q, 32, time.Hour)
	e.unknown = t.gone || errors.Is(err, kv.ErrUnknown)
	for _, got := range ms {
		if e.got[got.ID] {
			s.fail(fmt.Errorf("%w: %s of %s", ErrGotTwice, got.ID, a.name))
		}
		e.got[got.ID] = true
	}
	e.over = err == nil && len(ms) == 0
	if err != nil && !t.gone {
		_ = t.rest(leaderPause)
	}
}

// undelivered looks for a message of a queue that lives and was not got. It returns how many the living subqueues have.
func (h *history) undelivered(q queues.Queue, got map[queues.MessageID]bool, now geo.Timestamp) (n int, err error) {
	d, err := queues.ReadDictionary(partitionRows{q.DictionaryPartition(), h.m.parts[string(q.DictionaryPartition().Append(nil))]}, q)
	if err != nil {
		return 0, err
	}
	prefix := string(keys.AppendContainer(nil, geo.Queue, q.Account, q.Name, q.Generation))
	for _, part := range slices.Sorted(maps.Keys(h.m.parts)) {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil || !strings.HasPrefix(part, prefix) || p.Object == "" {
			continue
		}
		c, err := contents(p.Object, h.m.parts[part])
		if err != nil {
			return 0, err
		}
		listed := slices.IndexFunc(d.Subqueues, func(e queues.Entry) bool { return e.ID.String() == p.Object })
		if c.State == queues.StateToBeDeleted || listed >= 0 && d.Subqueues[listed].State == queues.StateToBeDeleted {
			continue
		}
		for id, m := range c.Messages {
			if (m.Expires == 0 || m.Expires > now+3*geo.TicksPerSecond) && !got[id] {
				return 0, fmt.Errorf("message %s in subqueue %s, state %d, visible from %s", id, p.Object, c.State, m.Visible)
			}
		}
		n += len(c.Messages)
	}
	return n, nil
}
