package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Queues and their clients, in runs of Options.Queues. The queue service of a node, and its keeper, are those of a
// process: what a client asks for is a task of the node that leads the range, and ends with it. Each command is a write of
// the run. What clients do is drawn apart from everything else.

const (
	queueClients = 3
	// keepEvery is the pause between two rounds of a keeper.
	keepEvery = 100 * time.Millisecond
	// hideMax is how long a message is hidden at most.
	hideMax = 2500 * time.Millisecond
	// apartBytes is the length of a text that does not stand in the row of its message.
	apartBytes = queues.InlineMax + 1
)

// quickScale has a queue scaled up and down within a run, by the load of its clients.
var quickScale = queues.ScaleOptions{ //nolint:gochecknoglobals // A table.
	Window: 200 * time.Millisecond, UpRate: 25, DownSize: 100, DownQuiet: time.Second, Cooldown: 300 * time.Millisecond, Max: 4,
	WithinRange: true,
}

// planQueues has a run with queues.
func (s *Sim) planQueues(seed uint64) {
	s.queues = rand.New(rand.NewPCG(seed, 0x717565756573))
	s.use(geo.Queue)
}

// drawn reads random bytes: ids and choices of the queue service.
type drawn struct{ *rand.Rand }

// Read implements io.Reader.
func (d drawn) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(d.Uint32())
	}
	return len(p), nil
}

// openQueues begins the queue service of a node and its keeper.
func (m *member) openQueues() {
	s := m.l.s
	if s.queues == nil {
		return
	}
	m.messages = queues.New(queues.Options{
		Stamp: &desk{m: m}, Writer: queueWriter{m}, Clock: m.clock, Random: drawn{s.queues}, Alone: true,
		Collected: func(n int, expired bool) {
			if expired {
				s.counts.QueueExpired += uint64(n)
			} else {
				s.counts.QueueCleared += uint64(n)
			}
		},
	})
	keeper := queues.NewKeeper(m.messages, queues.KeeperOptions{
		Leader: func(id geo.RangeID) *ranges.Range {
			if m.leads(id) {
				return m.n.Range(id)
			}
			return nil
		},
		Scale: quickScale, Every: keepEvery, Scaled: func(act queues.Act) {
			switch act {
			case queues.ActAdded:
				s.counts.QueueAdded++
			case queues.ActDrained:
				s.counts.QueueDrained++
			case queues.ActRemoved:
				s.counts.QueueRemoved++
			}
		},
	})
	m.begin(func() {
		for rest := keepEvery; s.task.rest(rest) == nil; {
			rest = max(keeper.Step(context.Background()), time.Millisecond)
		}
	})
}

// queueWriter commits the commands of a node's queue service. It is called in tasks of the node.
type queueWriter struct{ m *member }

// Write implements services.Writer.
func (w queueWriter) Write(_ context.Context, c services.Write) error {
	m, s := w.m, w.m.l.s
	o := s.newOpAt(s.account(c.Partition().Account), c, m.l)
	switch {
	case s.unknownThere(o):
		s.notSubmitted(o)
		return storageerr.QueueNotFound
	case !m.leads(o.rangeID):
		s.notSubmitted(o)
		return kv.ErrBusy
	}
	err := s.task.await(submitMax, func(done func(error)) {
		s.submitTo(m, o, func() { done(nil) })
	})
	switch {
	case err != nil:
		return err
	case o.outcome == open:
		return kv.ErrUnknown
	case errors.Is(o.answer, ranges.ErrNotLeader):
		return kv.ErrBusy
	}
	return o.answer
}

// CloseGeneration implements services.Writer. The queue service does not call it.
func (queueWriter) CloseGeneration(context.Context, geo.Service, geo.Account, string, keys.Generation) error {
	return kv.ErrBusy
}

// gotten is a message that a client got, and may update and delete.
type gotten struct {
	q       queues.Queue
	id      queues.MessageID
	receipt string
}

// startQueues starts the clients of queues.
func (s *Sim) startQueues() {
	if s.queues == nil {
		return
	}
	for _, a := range s.accounts {
		for range queueClients {
			s.queueClient(a)
		}
	}
}

// queueClient does one operation after the other until the faults end.
func (s *Sim) queueClient(a *account) {
	s.after(time.Duration(s.queues.Int64N(int64(thinkMax))), func() {
		if !s.working() {
			return
		}
		next := func() { s.queueClient(a) }
		switch draw := s.queues.Float64(); {
		case draw < s.churn(0.02):
			s.submit(s.newContainer(a, geo.Queue), next)
		case draw < s.churn(0.02)*1.5 && s.story == nil:
			s.deleteContainer(a, geo.Queue, next)
		default:
			s.askQueue(a, next)
		}
	})
}

// askQueue has a client ask for something of a queue, of a node that takes itself for the leader of its range.
func (s *Sim) askQueue(a *account, done func()) {
	leave := s.patiently(done)
	all := a.containers[geo.Queue]
	c := all[len(all)-1]
	if s.queues.Float64() < 0.3 {
		c = all[s.queues.IntN(len(all))]
	}
	m := s.drawHome(a).leader(geo.FirstRange(geo.Queue))
	if m == nil {
		leave()
		return
	}
	m.whenAwake(func() {
		if m.n == nil || m.killed != nil {
			leave()
			return
		}
		m.begin(func() {
			s.callQueue(m, a, queueOf(c))
			leave()
		})
	})
}

func queueOf(c *container) queues.Queue {
	return queues.Queue{Account: c.account.name, Name: c.name, Generation: c.generation}
}

// callQueue draws a call and makes it.
func (s *Sim) callQueue(m *member, a *account, q queues.Queue) {
	ctx, svc := context.Background(), m.messages
	span := func(most time.Duration) time.Duration { return time.Duration(s.queues.Int64N(int64(most))) }
	var err error
	switch draw := s.queues.Float64(); {
	case draw < 0.4:
		o := queues.PutOptions{Text: []byte("message"), TTL: -1}
		if s.queues.Float64() < 0.2 {
			o.Text = []byte(strings.Repeat("x", apartBytes))
		}
		switch s.queues.IntN(8) {
		case 0:
			o.TTL = time.Millisecond + span(hideMax)
		case 1:
			o.Delay = span(hideMax / 4)
		}
		_, err = svc.Put(ctx, q, o)
	case draw < 0.75:
		err = s.getFrom(m, a, q, 1+s.queues.IntN(5), span(hideMax))
	case draw < 0.76:
		err = svc.Clear(ctx, q)
	case len(a.got) == 0:
		_, err = svc.Count(ctx, &desk{m: m}, q)
	case draw < 0.82:
		i := s.queues.IntN(len(a.got))
		g := a.got[i]
		delete(a.hidden, g.id)
		var text []byte
		if s.queues.IntN(2) == 0 {
			text = []byte(strings.Repeat("y", s.queues.IntN(2)*apartBytes))
		}
		var updated queues.Message
		if updated, err = svc.Update(ctx, g.q, g.id, g.receipt, span(hideMax/2), text); err == nil && i < len(a.got) {
			a.got[i] = gotten{g.q, g.id, updated.Receipt}
		}
	default:
		i := s.queues.IntN(len(a.got))
		g := a.got[i]
		a.got = append(a.got[:i:i], a.got[i+1:]...)
		err = svc.Delete(ctx, g.q, g.id, g.receipt)
	}
	s.event("%s queue %s of %s: %v", m.l.name, q.Name, q.Account, err)
}

// getFrom gets messages.
func (s *Sim) getFrom(m *member, a *account, q queues.Queue, limit int, timeout time.Duration) error {
	asked, forks := s.now, a.forks
	ms, err := m.messages.Get(context.Background(), q, limit, timeout)
	if s.task.gone {
		return errGone // The answer is lost.
	}
	for _, got := range ms {
		s.checkHidden(a, got.ID, hidden{
			asked: asked, timeout: timeout, forks: forks, q: q, until: got.Visible, got: got.DequeueCount,
		})
		a.got = append(a.got, gotten{q, got.ID, got.Receipt})
		s.counts.QueueGot++
	}
	return err
}
