package membership

import (
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/stamp/replica"
)

// group is the nodes of a range, and the messages between them.
type group struct {
	placed []geo.NodeID
	nodes  []*modelNode
	sent   []sent
	log    strings.Builder
}

// sent is a message on its way.
type sent struct {
	from, to geo.NodeID
	message  Message
}

func newGroup(placed ...geo.NodeID) *group {
	g := &group{placed: placed}
	for _, p := range placed {
		n := &modelNode{node: p, group: g}
		n.disk.acted, n.disk.broken = map[geo.ReplicaID]bool{}, map[geo.ReplicaID]bool{}
		n.empty()
		g.nodes = append(g.nodes, n)
	}
	return g
}

func (g *group) logf(format string, args ...any) { fmt.Fprintf(&g.log, format+"\n", args...) }

func (g *group) node(id geo.NodeID) *modelNode {
	for _, n := range g.nodes {
		if n.node == id {
			return n
		}
	}
	panic(fmt.Sprintf("no node %d", id))
}

func reaches(a, b *modelNode) bool { return a.m != nil && b.m != nil && !a.cut && !b.cut }

// deliver passes messages on until none is on its way.
func (g *group) deliver() {
	for len(g.sent) > 0 {
		s := g.sent[0]
		g.sent = g.sent[1:]
		if from, to := g.node(s.from), g.node(s.to); !from.cut && !to.cut {
			to.step(Received{From: s.from, Message: s.message})
			to.keepLost()
		}
	}
}

// tick is one of all nodes: the leaders replicate, then each node manages its membership.
func (g *group) tick() {
	for _, n := range g.nodes {
		n.hasLeader = n.leads
	}
	for _, n := range g.nodes {
		if n.leads {
			g.replicate(n)
			g.deliver()
		}
	}
	for _, n := range g.nodes {
		if n.m == nil {
			continue
		}
		n.step(Join{Lost: n.lost != nil})
		if n.m != nil {
			n.step(n.manage())
		}
		g.deliver()
	}
}

func (n *modelNode) manage() Manage {
	e := Manage{Lost: n.lost != nil, Due: true}
	if e.Lost {
		return e
	}
	e.HasLeader, e.Leads, e.Replica, e.Members = n.hasLeader, n.leads, n.m.Identity().Replica, n.disk.members
	if n.leads {
		e.InSync = n.inSync
		for _, r := range e.Members.List {
			if r.Learner {
				e.Learners = append(e.Learners, Progress{Replica: r.ID, Match: n.match[r.ID], Last: n.disk.last})
			}
		}
	}
	return e
}

// exchange sends one of Raft's messages to a replica and its answer back: whether both were
// admitted, and the replica is one that answers.
func (g *group) exchange(from *modelNode, to replica.Member, fromLeader bool, handle func(*modelNode) bool) bool {
	at, own := g.node(to.Node), from.m.Identity().Replica
	if !reaches(from, at) {
		return false
	}
	ok := at.step(RaftMessage{From: from.node, Sender: own, Receiver: to.ID, FromLeader: fromLeader, Members: at.disk.members, CanRebuild: true})
	at.keepLost()
	if !ok || !at.trusted() || !handle(at) {
		return false
	}
	at.acts()
	return from.step(RaftMessage{From: at.node, Sender: to.ID, Receiver: own, Members: from.disk.members})
}

// replicate is one round of a leader to all its members. It reports whether a quorum answered; a
// leader without one leads no more.
func (g *group) replicate(l *modelNode) bool {
	l.acts()
	l.inSync, l.match = 1, map[geo.ReplicaID]uint64{}
	before := l.disk.members
	for _, r := range before.List {
		if r.Node == l.node {
			continue
		}
		ok := g.exchange(l, r, true, func(at *modelNode) bool {
			if at.disk.term > l.disk.term {
				return false
			}
			at.disk.hardState, at.disk.term, at.leads, at.hasLeader = true, l.disk.term, false, true
			at.disk.proposed = nil
			if !r.Learner {
				at.disk.last = l.disk.last
			}
			at.disk.last, at.disk.lastTerm = min(l.disk.last, at.disk.last+feedMax), l.disk.lastTerm
			if at.disk.last == l.disk.last {
				at.disk.members = before
			}
			return true
		})
		if at := g.node(r.Node); ok {
			l.match[r.ID] = at.disk.last
			if !r.Learner && at.disk.last == l.disk.last {
				l.inSync++
			}
		}
	}
	if l.inSync <= len(before.Voters())/2 {
		l.leads, l.hasLeader = false, false
		return false
	}
	if l.disk.proposed != nil {
		l.disk.members, l.disk.proposed = *l.disk.proposed, nil
	}
	return true
}

// elect lets a node stand for election.
func (g *group) elect(n *modelNode) {
	own, ok := n.disk.members.On(n.node)
	if !n.trusted() || !ok || own.Learner || own.ID != n.m.Identity().Replica {
		g.logf("%d may not stand", n.node)
		return
	}
	n.disk.term++
	n.disk.hardState = true
	n.acts()
	votes := 1
	for _, r := range n.disk.members.Voters() {
		if r.Node != n.node && n.m != nil && g.exchange(n, r, false, func(at *modelNode) bool {
			if at.disk.term >= n.disk.term || n.survey().Behind(at.survey()) {
				return false
			}
			at.disk.hardState, at.disk.term, at.leads = true, n.disk.term, false
			return true
		}) {
			votes++
		}
	}
	g.deliver()
	if all := len(n.disk.members.Voters()); votes <= all/2 || !n.trusted() {
		g.logf("%d is not elected: %d of %d votes", n.node, votes, all)
		return
	}
	n.leads, n.hasLeader = true, true
}

// surveys are those of the nodes that an operator reaches.
func (g *group) surveys() (all []Survey) {
	for _, n := range g.nodes {
		if n.m != nil && !n.cut {
			all = append(all, n.survey())
		}
	}
	return all
}

// state is one line for each node.
func (g *group) state() string {
	var b strings.Builder
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "node %d: ", n.node)
		if id := n.disk.id; id == nil {
			b.WriteString("no identity")
		} else {
			fmt.Fprintf(&b, "%s %s", id.Phase, number(id.Replica))
		}
		fmt.Fprintf(&b, ", log %d, of", n.disk.last)
		for _, r := range n.disk.members.List {
			fmt.Fprintf(&b, " %s", number(r.ID))
			if r.Learner {
				b.WriteString("(learner)")
			}
		}
		switch {
		case n.m == nil:
			b.WriteString(", down")
		case n.leads:
			b.WriteString(", leads")
		case n.lost != nil:
			b.WriteString(", silent")
		}
		if n.cut {
			b.WriteString(", cut off")
		}
		b.WriteString("\n")
	}
	return b.String()
}
