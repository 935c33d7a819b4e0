package skew

import (
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

const (
	// askEvery lies between two questions to a peer whose clock is known.
	askEvery = time.Second
	// sampleAge is how long a measurement counts, in running time. The clocks of two machines drift
	// apart by a few milliseconds in it.
	sampleAge = 30 * time.Second
	// samplesMax bounds the measurements kept of a peer.
	samplesMax = 64
	// driftMax is by how much two measurements may contradict each other before the older one is
	// dropped: the peer's clock was set in between.
	driftMax = 20 * time.Millisecond
	// stepMin is by how much the wall clock here must be set at once to void all measurements: the
	// clocks of the peers may have been set too, as those of nodes on one machine are.
	stepMin = geo.ClockOffMax / 4
	// offMax bounds offsets: an answer can hold any time.
	offMax = 100 * 365 * 24 * time.Hour
)

// Question asks a peer for its wall clock.
type Question struct {
	// Sent is the asking node's monotonic time.
	Sent time.Duration
}

// Answer answers a Question.
type Answer struct {
	// Sent is that of the question.
	Sent time.Duration
	// Wall is the answering node's wall clock when the question arrived, in microseconds since the
	// Unix epoch.
	Wall int64
	// Held is how long the answer was held back after that.
	Held time.Duration
	// Unsure and Leapt: see Own.
	Unsure bool
	Leapt  time.Duration
}

// Table has the newest measurements of the clocks of a node's peers. Its methods may be called
// concurrently. They read the clocks without holding the lock.
type Table struct {
	self    geo.NodeID
	clock   clock.Clock
	running *clock.Running

	mu    sync.Mutex
	peers map[geo.NodeID]*peer
	// base and baseErr are those of the newest reading. steppedAt is the monotonic time of the
	// newest one that differed from the one before by stepMin; 0 for none.
	base      time.Time
	baseErr   time.Duration
	steppedAt time.Duration
	// waiting counts the questions to be answered.
	waiting int
	// paired: there is another location, whose clock can be asked for.
	paired bool
	belief belief
}

// peer is what is known of the clock of one peer.
type peer struct {
	asked   bool
	askedAt time.Duration
	// samples are in the order of their times and of their errors, the least error first: one that
	// is both newer and better replaces the others.
	samples []sample
	// question is to be answered, nil for none. It arrived at arrived, when the clock here was own.
	question *Question
	arrived  Reading
	own      Own
}

// sample is one measurement.
type sample struct {
	// base is what the peer's wall clock showed at the monotonic time 0 of this node, ± err.
	base time.Time
	err  time.Duration
	// at is the running time at which it came.
	at time.Duration
	// leapt: the peer's clock had leapt ahead. unsure: it proves nothing.
	leapt, unsure bool
}

// New returns the table of a node. running is the running time of its scheduler. paired: AskFar is called, and what it
// asks for is asked.
func New(self geo.NodeID, peers []geo.NodeID, c clock.Clock, running *clock.Running, paired bool) *Table {
	t := &Table{self: self, clock: c, running: running, peers: map[geo.NodeID]*peer{}, paired: paired}
	for _, id := range peers {
		if id != self {
			t.peers[id] = &peer{}
		}
	}
	return t
}

// Ask returns the question to send at once, and to which peers, in order. It is called once a tick:
// a peer is asked every second, and in every tick while its clock is not known.
func (t *Table) Ask() (q Question, ask []geo.NodeID) {
	now := Read(t.clock)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(now)
	for id, p := range t.peers {
		if _, known := t.best(p); !known || !p.asked || now.Mono-p.askedAt >= askEvery {
			p.asked, p.askedAt = true, now.Mono
			ask = append(ask, id)
		}
	}
	slices.Sort(ask)
	return Question{Sent: now.Mono}, ask
}

// TakeQuestion takes the question of a peer, when it arrives.
func (t *Table) TakeQuestion(from geo.NodeID, q Question) {
	now := Read(t.clock)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[from]
	if p == nil {
		return
	}
	if p.question == nil {
		t.waiting++
	}
	t.note(now)
	p.question, p.arrived, p.own = &q, now, t.own(now)
}

// To is an answer for a peer.
type To struct {
	Node   geo.NodeID
	Answer Answer
}

// Answers returns the answers to the questions that arrived since the last call, to be sent at once.
func (t *Table) Answers() (out []To) {
	t.mu.Lock()
	none := t.waiting == 0
	t.mu.Unlock()
	if none {
		return nil
	}
	now := t.clock.Mono()
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, p := range t.peers {
		if p.question == nil {
			continue
		}
		// The wall clock was read at most Err after Mono.
		held := max(0, now-p.arrived.Mono-p.arrived.Err)
		out = append(out, To{id, Answer{Sent: p.question.Sent, Wall: p.own.Wall, Held: held, Unsure: p.own.Unsure, Leapt: p.own.Leapt}})
		p.question = nil
	}
	t.waiting = 0
	slices.SortFunc(out, func(a, b To) int { return int(a.Node) - int(b.Node) })
	return out
}

// TakeAnswer takes the answer of a peer, when it arrives. One that cannot be true is dropped.
func (t *Table) TakeAnswer(from geo.NodeID, a Answer) {
	arrived := t.clock.Mono()
	width := arrived - a.Sent - a.Held
	if a.Sent < 0 || a.Sent > arrived || a.Held < 0 || a.Held > arrived || width < 0 {
		return
	}
	s := sample{
		base: time.UnixMicro(a.Wall).Add(-(a.Sent + width/2)), err: width/2 + time.Microsecond, at: t.running.Time(),
		leapt: a.Leapt > 0, unsure: a.Unsure,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[from]
	if p == nil || t.steppedAt != 0 && a.Sent <= t.steppedAt {
		return
	}
	p.samples = slices.DeleteFunc(p.samples, func(old sample) bool {
		return old.err >= s.err || old.leapt != s.leapt || old.unsure != s.unsure || t.old(old) || distance(old.base, s.base) > old.err+s.err+driftMax
	})
	if len(p.samples) < samplesMax {
		p.samples = append(p.samples, s)
	}
	t.weighAgainst(s, Own{Wall: a.Wall, Unsure: a.Unsure, Leapt: a.Leapt}, false)
}

// note takes a reading of the clocks here into account.
func (t *Table) note(now Reading) {
	base := now.base()
	if !t.base.IsZero() && distance(base, t.base) > stepMin+now.Err+t.baseErr {
		t.steppedAt = now.Mono
		for _, p := range t.peers {
			p.samples, p.asked = nil, false
		}
	}
	t.base, t.baseErr = base, now.Err
	t.weigh()
}

// old reports whether a measurement counts no more.
func (t *Table) old(s sample) bool { return t.running.Time()-s.at > sampleAge }

// best returns the best measurement of a peer's clock.
func (t *Table) best(p *peer) (sample, bool) {
	for len(p.samples) > 0 && t.old(p.samples[0]) {
		p.samples = p.samples[1:]
	}
	if len(p.samples) == 0 {
		return sample{}, false
	}
	return p.samples[0], true
}

// ahead is how far a is ahead of b, within offMax.
func ahead(a, b time.Time) time.Duration { return max(-offMax, min(offMax, a.Sub(b))) }

func distance(a, b time.Time) time.Duration { return ahead(a, b).Abs() }
