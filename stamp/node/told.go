package node

import (
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// A node without a replica of a range is told by its leader, every tick, who that is: it
// hands on to it what it is asked for.

// msgLeads says that the sender leads a range: Index is its term.
const msgLeads = pb.MessageType(1006)

// told are the leaders that a node was told of.
type told struct {
	mu      sync.Mutex
	leaders map[geo.RangeID]leads
}

type leads struct {
	node geo.NodeID
	term uint64
	at   time.Duration // running time of the node that was told
}

// tellLeads tells of the ranges that are led here, once a tick.
func (n *Node) tellLeads() {
	for _, r := range n.ranges {
		on := n.placement.Of(r.ID())
		if len(on) == len(n.placement.Nodes) || !r.Leading() {
			continue
		}
		_, term := r.Replica().Leader()
		next := 0
		for _, p := range n.placement.Nodes { // Both ascend.
			if next < len(on) && on[next] == p {
				next++
				continue
			}
			n.tell(p, r.ID(), msgLeads, term, 0, false)
		}
	}
}

// hearLeads takes a message about a range that is not here.
func (n *Node) hearLeads(e Envelope) {
	if e.Message.GetType() != msgLeads || !slices.Contains(n.placement.Of(e.Range), e.From) {
		return
	}
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	// One that has not missed its successor yet. Where that is silent the term counts nothing: a
	// range that was re-formed begins with that of the survivor, which may be lower.
	if last := n.told.leaders[e.Range]; e.Message.GetIndex() < last.term && n.speaks(last) {
		return
	}
	if n.told.leaders == nil {
		n.told.leaders = map[geo.RangeID]leads{}
	}
	n.told.leaders[e.Range] = leads{e.From, e.Message.GetIndex(), n.running.Time()}
}

// LeaderHint returns the leader of a range that is not here, 0 where none spoke for an
// election timeout of the time that the node ran.
func (n *Node) LeaderHint(id geo.RangeID) geo.NodeID {
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	if l := n.told.leaders[id]; n.speaks(l) {
		return l.node
	}
	return 0
}

// speaks reports whether a leader spoke within an election timeout.
func (n *Node) speaks(l leads) bool {
	return n.running.Time()-l.at <= time.Duration(n.o.ElectionTicks)*n.o.Tick
}
