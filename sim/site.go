package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/replication/site"
	"antipode/secondary"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
)

// process is what the process of a node does of the replication: it carries out what its site decides, as
// location.following does in goroutines. It dies with its node.
type process struct {
	m    *member
	site *site.Machine
	// lookAt is when it looks again; saw is what it saw last.
	lookAt time.Duration
	saw    site.Term
	// read are the answers to the reads of the site, by term.
	read map[site.Term]time.Time

	// receiver is nil while none runs. It wants to be stepped at; ending means that it may go on for a step or two.
	receiver *receive.Receiver
	term     site.Term
	at       time.Duration
	dirty    bool
	ending   bool
}

// startProcess starts the process of a node that was just opened.
func (m *member) startProcess() {
	m.process = &process{
		m: m, site: site.New(site.Options{Ranges: m.l.s.shipped}), lookAt: m.l.s.now, read: map[site.Term]time.Time{},
	}
	m.process.step(site.NodeStarted{Node: m.id, Ranges: m.has(everyRange[:])})
}

// siteTakes bounds how long a read of the site and the end of a receiver take.
const siteTakes = 5 * time.Millisecond

// step lets the site decide and carries that out.
func (p *process) step(e site.Event) {
	for _, eff := range p.site.Step(p.m.l.s.now, e) {
		p.carryOut(eff)
	}
}

func (p *process) carryOut(e site.Effect) {
	s := p.m.l.s
	switch e := e.(type) {
	case site.Read:
		p.m.begin(func() {
			known, err := p.knownStream()
			switch {
			case p.m.process != p || p.m.killed != nil:
			case err != nil || s.faulty && s.chance(0.1):
				p.step(site.Failed(e))
			default:
				p.read[e.Term] = known
				p.step(site.Known{Term: e.Term, Incarnation: known})
			}
		})
	case site.StartReceiver:
		p.checkStart(e)
		p.receive(e)
	case site.EndReceiver:
		p.ending = true
		p.later(func() {
			p.receiver, p.ending = nil, false
			p.step(site.Ended(e))
		})
	case site.StartShipper:
		p.m.ship(e.Range)
	}
}

// knownStream returns when the incoming stream was made, as the location knows: see location.knownIncarnation.
func (p *process) knownStream() (made time.Time, err error) {
	d := &desk{m: p.m}
	err = d.Read(context.Background(), geo.FirstRange(geo.Catalog), func(state ranges.State) (err error) {
		made, err = catalog.StreamMade(state, p.m.l.far.name)
		return err
	})
	return made, err
}

// rememberStream keeps when the incoming stream was made: see location.rememberIncarnation.
func (p *process) rememberStream(made time.Time) {
	p.m.begin(func() {
		d := &desk{m: p.m}
		cmd := directory.RememberStream{Origin: p.m.l.far.name, Made: made}
		if err := d.Submit(context.Background(), geo.FirstRange(geo.Catalog), cmd); err != nil {
			p.m.l.s.event("%s node %d: which stream it has is not kept: %v", p.m.l.name, p.m.id, err)
		}
	})
}

// later does something in a moment, if the process lives then.
func (p *process) later(f func()) {
	s := p.m.l.s
	s.after(s.between(0, siteTakes), func() {
		if p.m.process == p && p.m.killed == nil {
			p.m.whenAwake(f)
		}
	})
}

// receive starts a receiver.
func (p *process) receive(e site.StartReceiver) {
	m, l := p.m, p.m.l
	l.s.counts.ReceiverStarted++
	l.s.event("%s node %d receives in term %d", l.name, m.id, e.Term)
	p.term, p.dirty = e.Term, true
	p.receiver = receive.New(receive.Options{
		Origin: l.far.name, Ranges: l.s.shipped, Consumer: l.consumer, Source: link{l.s, l.far},
		Applier: watchedApplier{secondary.NewApplier(nodeStamp{m}, firstRanges), l}, Clock: l.s.clock, Logger: quiet, Alarm: l.alarm,
		Wake: func() { p.dirty = true }, BatchBytesMax: l.s.batchBytesMax, PendingBytesMax: pendingBytesMax,
		StandAfter: 500 * time.Millisecond, UnackedMax: 64, // So little that a range stands in some runs.
		Incarnation: e.Incarnation, OnIncarnation: p.rememberStream,
	})
}

// next is when the process wants to work.
func (p *process) next() time.Duration {
	next := p.lookAt
	if p.receiver != nil {
		next = min(next, p.at)
	}
	if p.dirty {
		return 0
	}
	return next
}

// work looks and steps the receiver where that is due, and reports whether anything was.
func (p *process) work() (busy bool) {
	s := p.m.l.s
	if s.now >= p.lookAt {
		p.lookAt, busy = s.now+site.LookEvery, true
		p.saw = p.m.leadTerm()
		p.step(site.Look{Lead: p.saw})
	}
	if p.receiver == nil {
		p.dirty = false
		return busy
	}
	if p.dirty || s.now >= p.at {
		p.checkActs()
		p.dirty, busy = false, true
		p.at = s.now + p.receiver.Step(s.now)
	}
	return busy
}

// leadTerm is the term in which the node leads the catalog, 0 for none.
func (m *member) leadTerm() site.Term {
	if m.l.deaf || !m.leads(geo.FirstRange(geo.Catalog)) {
		return 0
	}
	return site.Term(m.n.Range(geo.FirstRange(geo.Catalog)).LeadTerm())
}

// checkStart: a receiver begins in the term in which its node leads, alone in it, after the one before it in
// the process has ended, and with what was read in that term.
func (p *process) checkStart(e site.StartReceiver) {
	m := p.m
	known, read := p.read[e.Term]
	switch {
	case e.Term != p.saw:
		p.fail("begins in term %d, and saw %d", e.Term, p.saw)
	case p.receiver != nil:
		p.fail("begins in term %d beside that of term %d", e.Term, p.term)
	case !read || !known.Equal(e.Incarnation):
		p.fail("begins in term %d with what was not read in it", e.Term)
	}
	for _, other := range m.l.members {
		if other != m && other.process != nil && other.process.receiver != nil {
			if other.process.term == e.Term {
				p.fail("begins in term %d, in which node %d receives", e.Term, other.id)
			}
			m.l.s.counts.ReceiversAtOnce++
		}
	}
}

// checkActs: a receiver acts only in the term that its process saw last, but for what it has begun.
func (p *process) checkActs() {
	if p.term != p.saw && !p.ending {
		p.fail("acts in term %d, and saw %d", p.term, p.saw)
	}
}

func (p *process) fail(format string, args ...any) {
	p.m.l.s.fail(fmt.Errorf("%w: %s-%d: a receiver %s", ErrReceiver, p.m.l.name, p.m.id, fmt.Sprintf(format, args...)))
}

// receiving is the process that receives, the one of the newest term if there are two; nil for none.
func (l *location) receiving() (found *process) {
	for _, m := range l.members {
		if p := m.process; p != nil && p.receiver != nil && m.n != nil && m.killed == nil && (found == nil || p.term > found.term) {
			found = p
		}
	}
	return found
}

// wakeReceivers lets receivers look at the bus.
func (l *location) wakeReceivers() {
	for _, m := range l.members {
		if m.process != nil {
			m.process.dirty = true
		}
	}
}

// deafen kills what receives in the location, and lets nothing receive until it is undone.
func (l *location) deafen(deaf bool) {
	l.deaf = deaf
	for _, m := range l.members {
		if p := m.process; p != nil && p.receiver != nil {
			p.receiver = nil
			if !p.ending {
				p.step(site.Ended{Term: p.term})
			}
		}
	}
}

// shipping is a shipper and when it wants to be stepped.
type shipping struct {
	*ship.Shipper
	at    time.Duration
	dirty bool
}

// ship starts the shipper of a range.
func (m *member) ship(id geo.RangeID) {
	s := m.l.s
	var bounded []*ranges.Range
	for _, id := range m.has(recovered[:]) {
		bounded = append(bounded, m.n.Range(id))
	}
	budget := ship.Budget{Bytes: s.budget, Ranges: func() []*ranges.Range { return bounded }}
	if id == geo.FirstRange(geo.Catalog) {
		budget = ship.Budget{} // What is in a container that the other location does not know has to wait.
	}
	sh := &shipping{at: s.now}
	sh.Shipper = ship.New(ship.Options{
		Location: m.l.name, Range: m.n.Range(id), Publisher: m.l.publisher, Pusher: link{s, m.l.far}, Clock: m.clock,
		Logger: quiet, Alarm: m.l.alarm, Wake: func() { sh.dirty = true }, TrimEvery: 50 * time.Millisecond,
		// So small that frames are cut, queues overflow and pushes wait.
		Bounds: ship.Bounds{FrameBytesMax: 2 << 10, QueueBytesMax: 8 << 10, AheadBytesMax: 4 << 10, PushesMax: 2},
		Budget: budget, Withheld: m.withheld,
	})
	m.shippers[id] = sh
}

// withheld is ship.Options.Withheld: see location.withholding.
func (m *member) withheld(st geo.Stream) bool {
	cat := geo.FirstRange(geo.Catalog)
	r := m.n.Range(cat)
	if r == nil {
		return false
	}
	a, err := catalog.GetAccount(r.State(), st.Account)
	return err == nil && rejoin.Withheld(a, st, cat, m.l.name)
}

func (s *Sim) closeIntervalOf(id geo.RangeID) time.Duration {
	if slices.Contains(s.shipped, id) {
		return closeInterval
	}
	return 0
}
