package site

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// process is a process of a location as the property plays it: what its site asked for and what became of
// it, checked from outside.
type process struct {
	m *Machine
	// lead is what it holds to be the term in which it leads, 0 for none; seen is what it last looked at.
	lead, seen Term
	// reads are reads that are not answered, answered what the answers of this life were.
	reads    []Term
	answered map[Term]time.Time
	// acting are receivers that run, those of them that are to end in ending.
	acting, ending []Term
	stopped        bool
	// nodes are those that run, ships the ranges that each ships.
	nodes map[geo.NodeID][]geo.RangeID
	ships map[geo.NodeID][]geo.RangeID
}

func newProcess() *process {
	return &process{
		m: New(Options{Ranges: locationRanges}), answered: map[Term]time.Time{}, nodes: map[geo.NodeID][]geo.RangeID{}, ships: map[geo.NodeID][]geo.RangeID{},
	}
}

var locationRanges = []geo.RangeID{1, 2, 3, 4}

// location is two processes, of which each term of the catalog's leader is led by one.
type location struct {
	t         *rapid.T
	now       time.Duration
	term      Term
	processes []*process
}

// step takes an event to a process and carries out what its site decides.
func (l *location) step(p *process, e Event) {
	stopped := p.stopped
	switch e := e.(type) {
	case Look:
		p.seen = e.Lead
	case Known:
		p.answered[e.Term] = e.Incarnation
	case Stop:
		p.stopped = true
	case NodeStops:
		delete(p.nodes, e.Node)
	case NodeStarted:
		p.nodes[e.Node] = e.Ranges
	}
	for _, eff := range p.m.Step(l.now, e) {
		switch eff := eff.(type) {
		case Read:
			require.False(l.t, stopped, "a stopped site reads")
			require.Equal(l.t, p.seen, eff.Term, "it reads for a term that it does not lead")
			p.reads = append(p.reads, eff.Term)
		case StartReceiver:
			l.started(p, eff)
		case EndReceiver:
			require.Contains(l.t, p.acting, eff.Term)
			require.NotContains(l.t, p.ending, eff.Term, "ended twice")
			p.ending = append(p.ending, eff.Term)
		case StartShipper:
			require.False(l.t, stopped, "a stopped site ships")
			require.NotContains(l.t, p.ships[eff.Node], eff.Range, "shipped twice")
			p.ships[eff.Node] = append(p.ships[eff.Node], eff.Range)
		case StopShipper:
			p.ships[eff.Node] = slices.DeleteFunc(p.ships[eff.Node], func(id geo.RangeID) bool { return id == eff.Range })
		}
	}
	l.check(p)
}

// started checks a receiver that begins.
func (l *location) started(p *process, e StartReceiver) {
	require.False(l.t, p.stopped, "a stopped site receives")
	require.Equal(l.t, p.seen, e.Term, "it receives for a term that it does not lead")
	require.Empty(l.t, p.acting, "the receiver before it has not ended")
	known, read := p.answered[e.Term]
	require.True(l.t, read, "nothing was read in term %d", e.Term)
	require.Equal(l.t, known, e.Incarnation, "what was read is not what it begins with")
	for _, other := range l.processes {
		require.NotContains(l.t, other.acting, e.Term, "two receivers for one term")
	}
	p.acting = append(p.acting, e.Term)
}

// check holds after each event.
func (l *location) check(p *process) {
	for _, term := range p.acting {
		if term != p.seen || p.stopped {
			require.Contains(l.t, p.ending, term, "it receives in term %d, and last saw %d, stopped %t", term, p.seen, p.stopped)
		}
	}
	for id, ranges := range p.ships {
		if len(ranges) > 0 {
			require.Contains(l.t, p.nodes, id, "a node that is stopped ships")
		}
	}
	if !p.stopped {
		for id, ranges := range p.nodes {
			var want []geo.RangeID
			for _, r := range locationRanges {
				if slices.Contains(ranges, r) {
					want = append(want, r)
				}
			}
			require.ElementsMatch(l.t, want, p.ships[id], "node %d", id)
		}
	}
}

// A term has one receiver at most, in a process that holds that it leads in it, after what the receiver has
// to know was read in that term; a process ends its receiver at its next look after the lead was lost, and
// begins the next one only after that one has ended; a stopped site begins nothing; and in the end the process
// that leads receives. The lead moves, a process learns of it late or never, answers come late or not at
// all, processes die and stop.
// It holds R14.
func TestReceiversOfOneLocation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &location{t: t}
		for range 2 {
			l.processes = append(l.processes, newProcess())
		}
		one := rapid.IntRange(0, 1)
		draw := func() *process { return l.processes[one.Draw(t, "process")] }
		t.Repeat(map[string]func(*rapid.T){
			"elect": func(t *rapid.T) {
				p := draw()
				l.term++
				p.lead = l.term
			},
			"elect and work": func(t *rapid.T) {
				p := draw()
				l.term++
				p.lead = l.term
				l.work(p)
			},
			"work":   func(*rapid.T) { l.work(draw()) },
			"depose": func(t *rapid.T) { draw().lead = 0 },
			"look": func(t *rapid.T) {
				p := draw()
				l.step(p, Look{p.lead})
			},
			"wait": func(t *rapid.T) { l.now += LookEvery * time.Duration(rapid.IntRange(1, 30).Draw(t, "looks")) },
			"answer": func(t *rapid.T) {
				p := draw()
				if len(p.reads) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(p.reads)-1).Draw(t, "read")
				term := p.reads[i]
				p.reads = slices.Delete(p.reads, i, i+1)
				if rapid.Bool().Draw(t, "fails") {
					l.step(p, Failed{term})
					return
				}
				l.step(p, Known{term, time.Unix(rapid.Int64Range(1, 9).Draw(t, "incarnation"), 0)})
			},
			"end": func(t *rapid.T) {
				p := draw()
				if len(p.acting) == 0 || len(p.ending) == 0 && rapid.IntRange(0, 9).Draw(t, "by itself") > 0 {
					t.Skip()
				}
				l.end(p)
			},
			"start node": func(t *rapid.T) {
				p, id := draw(), geo.NodeID(rapid.IntRange(1, 2).Draw(t, "node"))
				if p.nodes[id] != nil {
					t.Skip()
				}
				l.step(p, NodeStarted{id, rapid.SliceOfNDistinct(rapid.SampledFrom([]geo.RangeID{1, 2, 3, 4, 5}), 1, 5, rapid.ID[geo.RangeID]).Draw(t, "ranges")})
			},
			"stop node": func(t *rapid.T) {
				p, id := draw(), geo.NodeID(rapid.IntRange(1, 2).Draw(t, "node"))
				if p.nodes[id] == nil {
					t.Skip()
				}
				l.step(p, NodeStops{id})
			},
			"stop": func(t *rapid.T) { l.step(draw(), Stop{}) },
			"die":  func(t *rapid.T) { l.processes[one.Draw(t, "process")] = newProcess() },
		})
		l.finish()
	})
}

// end ends its receiver.
func (l *location) end(p *process) {
	term := p.acting[0]
	p.acting, p.ending = nil, nil
	l.step(p, Ended{term})
}

// work lets a process look, and answers what it reads.
func (l *location) work(p *process) {
	l.step(p, Look{p.lead})
	for _, term := range p.reads {
		l.step(p, Known{term, time.Unix(int64(term), 0)})
	}
	p.reads = nil
}

// finish answers everything and elects one process for good: it receives, and nobody else.
func (l *location) finish() {
	l.processes = append(l.processes, newProcess())
	i := slices.IndexFunc(l.processes, func(p *process) bool { return !p.stopped })
	lead := l.processes[i]
	for _, p := range l.processes {
		p.lead = 0
	}
	l.term++
	lead.lead = l.term
	for range 3 {
		l.now += retryAfter
		for _, p := range l.processes {
			if len(p.ending) > 0 {
				l.end(p)
			}
			l.work(p)
		}
	}
	for i, p := range l.processes {
		var want []Term
		if p == lead {
			want = []Term{l.term}
		}
		require.Equal(l.t, want, p.acting, fmt.Sprintf("process %d", i))
	}
}
