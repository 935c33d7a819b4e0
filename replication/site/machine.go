package site

import (
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
)

// LookEvery is how often the owner of a Machine looks whether a node of the process leads the catalog. It
// is part of the time in which nobody receives after the catalog's leader changed.
const LookEvery = 50 * time.Millisecond

// retryAfter is the pause after a read that failed, and after a receiver that ended by itself.
const retryAfter = time.Second

// State is what a site does of the incoming stream.
type State byte

// The states.
const (
	// Following: another process receives, or none.
	Following State = iota
	// Reading: a node here leads the catalog, and what a receiver has to know is being read.
	Reading
	// Receiving: a receiver runs.
	Receiving
	// Ending: a receiver is to end and has not ended yet.
	Ending
	// Stopped: nothing is begun any more, shippers included.
	Stopped
)

// String is the state in logs.
func (s State) String() string {
	return [...]string{"following", "reading", "receiving", "ending", "stopped"}[s]
}

// Options configures a Machine.
type Options struct {
	// Whole: the process runs all nodes of the location. It receives all the time, whichever node leads.
	Whole bool
	// Ranges are those that the location ships.
	Ranges []geo.RangeID
}

// Machine is the site of one process. All its transitions are in this file, the states in the package
// text. It is used by one goroutine at a time.
type Machine struct {
	o     Options
	state State
	// term is the one of Reading, Receiving and Ending.
	term Term
	// answer is what the last receiver began with. It is for a planted bug alone.
	answer Known
	// retryAt is before when nothing is read.
	retryAt time.Duration
	// stopping: Ending goes on to Stopped.
	stopping bool
	// ships are the ranges that have a shipper, by node.
	ships map[geo.NodeID][]geo.RangeID
}

// New returns a site that does nothing yet.
func New(o Options) *Machine {
	return &Machine{o: o, ships: map[geo.NodeID][]geo.RangeID{}}
}

// State returns what the site does of the incoming stream, and for which term.
func (m *Machine) State() (State, Term) { return m.state, m.term }

// Step takes an event at a monotonic time and returns what the process has to do, in this order.
func (m *Machine) Step(now time.Duration, e Event) []Effect {
	switch e := e.(type) {
	case NodeStarted:
		return m.nodeStarted(e)
	case NodeStops:
		return m.nodeStops(e.Node)
	case Look:
		return m.look(now, e)
	case Known:
		return m.known(e)
	case Failed:
		return m.failed(now, e)
	case Ended:
		return m.ended(now, e)
	case Stop:
		return m.stop()
	}
	panic(fmt.Sprintf("site: no event %T", e))
}

// wholeTerm stands for all terms where no other process can receive.
const wholeTerm Term = 1

// look follows the lead of the catalog.
func (m *Machine) look(now time.Duration, e Look) []Effect {
	lead := e.Lead
	if m.o.Whole {
		lead = wholeTerm
	}
	if m.state == Receiving && lead != m.term && !plantedbugs.Planted(plantedbugs.ReceiverOutlivesTerm) {
		m.state = Ending
		return []Effect{EndReceiver{m.term}}
	}
	if m.state == Reading && lead != m.term {
		m.state = Following // The answer is of a term that is over.
	}
	if m.state != Following || lead == 0 || now < m.retryAt {
		return nil
	}
	m.state, m.term = Reading, lead
	if plantedbugs.Planted(plantedbugs.ReceiverFromMemory) && m.answer.Term != 0 {
		return m.known(Known{lead, m.answer.Incarnation})
	}
	return []Effect{Read{lead}}
}

// known begins to receive.
func (m *Machine) known(e Known) []Effect {
	if m.state != Reading || e.Term != m.term {
		return nil
	}
	m.state, m.answer = Receiving, e
	return []Effect{StartReceiver(e)}
}

// failed reads again later.
func (m *Machine) failed(now time.Duration, e Failed) []Effect {
	if m.state == Reading && e.Term == m.term {
		m.state, m.retryAt = Following, now+retryAfter
	}
	return nil
}

// ended takes up again with the next look, if the process is to receive.
func (m *Machine) ended(now time.Duration, e Ended) []Effect {
	switch {
	case e.Term != m.term || m.state != Receiving && m.state != Ending:
	case m.stopping:
		m.state = Stopped
	case m.state == Receiving:
		m.state, m.retryAt = Following, now+retryAfter
	default:
		m.state = Following
	}
	return nil
}

// stop ends the receiver. The shippers end with their nodes.
func (m *Machine) stop() []Effect {
	m.stopping = true
	switch m.state {
	case Receiving:
		m.state = Ending
		return []Effect{EndReceiver{m.term}}
	case Following, Reading:
		m.state = Stopped
	case Ending, Stopped:
	}
	return nil
}

// nodeStarted ships what the node has of the location's ranges.
func (m *Machine) nodeStarted(e NodeStarted) (out []Effect) {
	if m.stopping || m.ships[e.Node] != nil {
		return nil
	}
	for _, id := range m.o.Ranges {
		if slices.Contains(e.Ranges, id) {
			m.ships[e.Node] = append(m.ships[e.Node], id)
			out = append(out, StartShipper{e.Node, id})
		}
	}
	return out
}

// nodeStops stops its shippers.
func (m *Machine) nodeStops(id geo.NodeID) (out []Effect) {
	for _, r := range m.ships[id] {
		out = append(out, StopShipper{id, r})
	}
	delete(m.ships, id)
	return out
}
