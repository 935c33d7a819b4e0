package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"antipode/geo"
	"antipode/stamp/replica"
)

// modelRange is the range of the scenarios.
const modelRange geo.RangeID = 4

// feedMax is how many entries a learner is fed in a tick.
const feedMax = 100

// errQuarantined is what a node finds whose store was damaged in its last life.
var errQuarantined = fmt.Errorf("%w: its store is in quarantine", replica.ErrLost)

// disk is what a node keeps over a restart.
type disk struct {
	id        *Identity
	hardState bool
	term      uint64
	// last and lastTerm are the index and the term of the last entry in the log.
	last, lastTerm uint64
	members        replica.Members
	// proposed is the configuration at the end of the log, if that is not committed.
	proposed *replica.Members
	damaged  bool
	// acted are the ids under which the node voted or acknowledged; broken are those of them
	// whose promises it lost since. No node may act under such an id again (R4).
	acted, broken map[geo.ReplicaID]bool
}

// modelNode is a node: a Machine, and a model of the stores, of Raft and of the node around it.
type modelNode struct {
	node  geo.NodeID
	group *group
	disk  disk
	lives uint64
	cut   bool
	// crashAt is the effect before which the node crashes, once.
	crashAt string
	// bypass changes events before the machine gets them, so that one of its rules is without
	// effect; nil for a machine that has all its rules.
	bypass func(Event) Event

	// What a restart forgets; m is nil while the node is down.
	m         *Machine
	lost      error
	leads     bool
	hasLeader bool
	inSync    int
	match     map[geo.ReplicaID]uint64
}

func (n *modelNode) trusted() bool {
	return n.m != nil && n.lost == nil && n.m.Identity().Phase == Member
}

// empty gives the node a new folder. What it promised is lost.
func (n *modelNode) empty() {
	n.breakPromises()
	acted, broken := n.disk.acted, n.disk.broken
	n.disk = disk{members: replica.FirstMembers(n.group.placed), acted: acted, broken: broken}
}

func (n *modelNode) breakPromises() {
	for id := range n.disk.acted {
		n.disk.broken[id] = true
	}
}

// start begins a life of the node: as its node.Open and its first pass do.
func (n *modelNode) start() {
	n.lives++
	if n.disk.id == nil {
		n.disk.id = NewIdentity(n.node, Nonce(n.node)*100+Nonce(n.lives), false, replica.Members{})
	}
	id := *n.disk.id
	id.Peers = maps.Clone(id.Peers)
	n.m = New(Options{Node: n.node, Range: modelRange, Nodes: n.group.placed, Placement: 5, Rebuilds: true, Life: Nonce(n.lives)}, id)
	opened := Opened{HardState: n.disk.hardState}
	if n.disk.damaged {
		opened.Lost = errQuarantined
		n.disk.damaged = false
	}
	n.step(opened)
	n.keepLost()
}

// keepLost is in each pass.
func (n *modelNode) keepLost() {
	if n.m != nil && n.lost != nil {
		n.step(ReplicaFailed{n.lost})
	}
}

func (n *modelNode) crash() {
	n.m, n.lost, n.leads, n.hasLeader, n.inSync, n.match = nil, nil, false, false, 0, nil
}

// step passes an event to the machine and carries the effects out, in their order. Deliver, and the
// messages, go without a word.
func (n *modelNode) step(e Event) (deliver bool) {
	if n.m == nil {
		return false
	}
	if n.bypass != nil {
		e = n.bypass(e)
	}
	for _, effect := range n.m.Step(e) {
		word := wordOf(effect)
		if n.crashAt != "" && strings.HasPrefix(word, n.crashAt) {
			n.crashAt = ""
			n.group.logf("%d crashes before: %s", n.node, word)
			n.crash()
			return false
		}
		if word != "" {
			n.group.logf("%d: %s", n.node, word)
		}
		if _, ok := effect.(Deliver); ok {
			deliver = true
		}
		n.carryOut(effect)
	}
	return deliver
}

func (n *modelNode) carryOut(effect Effect) {
	switch e := effect.(type) {
	case Send:
		n.group.sent = append(n.group.sent, sent{n.node, e.To, e.Message})
	case SaveIdentity:
		id := e.Identity
		id.Peers = maps.Clone(id.Peers)
		n.disk.id = &id
	case Reopen:
		n.lost, n.leads, n.match = e.Lost, false, nil
	case Lose:
		n.lost, n.leads = e.Reason, false
	case Wipe:
		n.breakPromises()
		n.disk.hardState, n.disk.term, n.disk.last, n.disk.lastTerm = false, 0, 0, 0
		n.disk.members, n.disk.proposed = replica.FirstMembers(n.group.placed), nil
		n.step(Wiped{})
	case StartLog:
		n.disk.hardState = true
	case ReformState:
		n.disk.members, n.disk.proposed, n.disk.hardState = e.As.Members(), nil, true
		n.step(Reformed{})
	case ConfirmLeadership:
		if n.leads && n.group.replicate(n) {
			n.step(LeadershipConfirmed{To: e.To, Nonce: e.Nonce, Last: n.disk.members.Next - 1})
		}
	case AddLearner:
		m := n.disk.members
		n.propose(replica.Members{Next: m.Next + 1, List: append(slices.Clone(m.List), replica.Member{ID: m.Next, Node: e.Node, Learner: true})})
	case RemoveReplica:
		m := n.disk.members
		n.propose(replica.Members{Next: m.Next, List: slices.DeleteFunc(slices.Clone(m.List), func(r replica.Member) bool { return r.ID == e.Replica })})
	case Promote:
		list := slices.Clone(n.disk.members.List)
		for i := range list {
			list[i].Learner = list[i].Learner && list[i].ID != e.Replica
		}
		n.propose(replica.Members{Next: n.disk.members.Next, List: list})
	}
}

// propose appends a change of the configuration to the leader's log, one at a time.
func (n *modelNode) propose(m replica.Members) {
	if n.disk.proposed == nil {
		n.disk.proposed = &m
		n.append(1)
	}
}

// append appends entries to the log of a leader.
func (n *modelNode) append(entries uint64) {
	n.disk.last += entries
	n.disk.lastTerm = n.disk.term
}

func (n *modelNode) survey() Survey {
	return Survey{
		Node: n.node, Replica: n.m.Identity().Replica, Trusted: n.trusted(), Leads: n.leads,
		Term: n.disk.lastTerm, Index: n.disk.last, Members: n.disk.members,
	}
}

// breaksR4 begins a line that no scenario may have: see TestBrokenPromiseIsSeen.
const breaksR4 = "BREAKS R4"

// acts is for a vote or an acknowledgement under the id of the replica here.
func (n *modelNode) acts() {
	id := n.m.Identity().Replica
	if n.disk.broken[id] {
		n.group.logf("%d %s: it acts under %s, whose promises it lost", n.node, breaksR4, number(id))
	}
	n.disk.acted[id] = true
}

// wordOf describes an effect; it is empty for messages.
func wordOf(effect Effect) string {
	switch e := effect.(type) {
	case Send, Deliver, DropHeld:
		return ""
	case SaveIdentity:
		return fmt.Sprintf("saves that it is %s %s", e.Identity.Phase, number(e.Identity.Replica))
	case Reopen:
		if e.Lost != nil {
			return "opens a replica that is " + reason(e.Lost)
		}
		return "opens the replica"
	case Lose:
		return "takes the replica out: " + reason(e.Reason)
	case Wipe:
		return "removes rows and log"
	case StartLog:
		return "saves the first hard state"
	case ReformState:
		return "re-forms the state: " + e.As.String()
	case ReportReformed:
		return "reports what it kept"
	case Refused:
		return fmt.Sprintf("drops messages of node %d: %s", e.From, e.Why)
	case ConfirmLeadership:
		return fmt.Sprintf("confirms that it leads, for node %d", e.To)
	case AddLearner:
		return fmt.Sprintf("proposes a learner on node %d", e.Node)
	case RemoveReplica:
		return "proposes to remove " + number(e.Replica)
	case Promote:
		return "proposes to promote " + number(e.Replica)
	case Report:
		text := fmt.Sprintf("event %s: %s on node %d", e.Kind, number(e.Replica), e.Node)
		if e.Reason != "" {
			text += ": " + strings.TrimPrefix(e.Reason, replica.ErrLost.Error()+": ")
		}
		return text
	}
	return fmt.Sprintf("%T", effect)
}

// reason is an error of a lost replica, without the part that all have.
func reason(err error) string {
	switch {
	case errors.Is(err, replica.ErrLost):
		return "lost, " + strings.TrimPrefix(err.Error(), replica.ErrLost.Error()+": ")
	case errors.Is(err, replica.ErrRetired):
		return "retired, " + strings.TrimPrefix(err.Error(), replica.ErrRetired.Error()+": ")
	}
	return err.Error()
}

// number is an id with its recovery: r1.2/3 is the third of the first recovery, from node 2.
func number(id geo.ReplicaID) string {
	r := replica.RecoveryOf(id)
	if r == 0 {
		return fmt.Sprint(uint64(id))
	}
	return fmt.Sprintf("r%d.%d/%d", r>>10, r.Members().List[0].Node, id-r.None())
}
