package membership

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/replica"
)

// caughtUp is how many entries a learner may miss when it is promoted.
const caughtUp = 64

// Options configures a Machine.
type Options struct {
	Node  geo.NodeID
	Range geo.RangeID
	// Nodes are those of the range, this one among them.
	Nodes []geo.NodeID
	// Placement is the checksum of the stamp's placement here.
	Placement PlacementSum
	// Life names this life of the process to its peers: an answer to an earlier one is not taken for one to this.
	Life Nonce
	// Rebuilds: the node sends and takes range snapshots, without which no replica can be
	// rebuilt.
	Rebuilds bool
}

// Machine is the membership of one range on one node. All its transitions are in this file, but for what a folder
// that was set back does not know (setback.go); the states are in the package text.
type Machine struct {
	o Options
	// id is what the node's folder holds, or will when the effects so far are carried out.
	id Identity
	// reported are the last ids of lost replicas, as their nodes reported them; claims are the
	// nodes of replicas that the configuration here does not name yet (see senders.go).
	reported map[geo.NodeID]geo.ReplicaID
	claims   map[geo.ReplicaID]geo.NodeID
	// lastKnown: no id after that of the replica here was begun here. A start knows nothing: the disk may be set back.
	lastKnown bool
	// refused are the nodes of which a message was refused and reported to the operator.
	refused map[geo.NodeID]bool
	// members is the configuration as of the last Manage, if there was one; led is whether
	// this node led then.
	members *replica.Members
	led     bool
}

// New returns the Machine of a replica. Opened must be its first event.
func New(o Options, id Identity) *Machine {
	return &Machine{
		o: o, id: id, reported: map[geo.NodeID]geo.ReplicaID{}, claims: map[geo.ReplicaID]geo.NodeID{}, refused: map[geo.NodeID]bool{},
	}
}

// Identity is the identity as of the last event. Its map must not be changed.
func (m *Machine) Identity() Identity { return m.id }

// Recovery is the recovery that the replica here belongs to.
func (m *Machine) Recovery() replica.Recovery { return m.id.Recovery() }

// Step takes an event and returns what the node has to do, in this order.
func (m *Machine) Step(e Event) []Effect {
	switch e := e.(type) {
	case Opened:
		return m.opened(e)
	case Join:
		return m.join(e)
	case Manage:
		return m.manage(e)
	case ReplicaFailed:
		return m.failed(e.Reason)
	case Received:
		return m.receive(e)
	case RaftMessage:
		return m.raftMessage(e)
	case LeadershipConfirmed:
		return []Effect{Send{e.To, LastID{Nonce: e.Nonce, Replica: e.Last}}}
	case Reform:
		return m.reform(e)
	case Wiped:
		return m.wiped()
	case Reformed:
		return m.reformed()
	}
	panic(fmt.Sprintf("membership: no event %T", e))
}

// become makes another identity the replica's, durably.
func (m *Machine) become(p Phase, as geo.ReplicaID) Effect {
	m.id.Phase, m.id.Replica = p, as
	if p != Recovering {
		m.id.Floor = 0
	}
	return SaveIdentity{m.id}
}

// opened continues what a crash interrupted.
func (m *Machine) opened(e Opened) []Effect {
	switch {
	case m.id.Phase == Rebuilding:
		return []Effect{Wipe{}}
	case m.id.Phase == Recovering:
		return []Effect{m.reformState()}
	case e.Lost != nil:
		return []Effect{Reopen{e.Lost}}
	case m.id.Phase == Lost, m.id.Phase == Forgotten:
		return []Effect{Reopen{errEarlierLife}}
	case m.id.Phase == Member && !e.HardState:
		return []Effect{Reopen{fmt.Errorf("%w: its hard state is gone", replica.ErrLost)}}
	}
	return []Effect{Reopen{}}
}

// join asks the peers that have not answered. A node that finds a range empty cannot know
// whether the stamp is new or its own data is gone. It takes no part until every node of the
// range has answered: that it is empty too, or that it joined together with just this node,
// whose nonce it wrote down. If one knows the range, but not the nonce, this node lost what it
// had promised (R4).
//
// A node answers that it is empty only while it has neither voted nor acknowledged, which its
// durable phase shows; so an old answer does no harm.
func (m *Machine) join(e Join) (out []Effect) {
	if m.id.Phase != Joining || e.Lost {
		return nil
	}
	if len(m.id.Peers) == len(m.o.Nodes)-1 {
		// First the hard state, without which a member is lost, then the phase.
		return []Effect{StartLog{}, m.become(Member, m.id.Replica), Reopen{}}
	}
	for _, p := range m.others() {
		if _, answered := m.id.Peers[p]; !answered {
			out = append(out, Send{p, Hello{Nonce: m.id.Nonce, Placement: m.o.Placement}})
		}
	}
	return out
}

// failed makes it durable that the replica is lost, in the pass that found it: what showed it
// may not show again after a restart.
func (m *Machine) failed(reason error) []Effect {
	p := Lost
	switch m.id.Phase {
	case Joining: // The range exists, and this folder is new.
		p = Forgotten
	case Lost, Forgotten, Rebuilding, Recovering: // The last two have a new id already.
		return nil
	}
	return []Effect{m.become(p, m.id.Replica), Report{Kind: ReplicaLost, Node: m.o.Node, Replica: m.id.Replica, Reason: reason.Error()}}
}

// manage reports what changed, and as the leader makes the next change of the configuration.
func (m *Machine) manage(e Manage) (out []Effect) {
	if e.Lost {
		switch {
		case !e.Due || !m.o.Rebuilds || m.id.Phase != Lost && m.id.Phase != Forgotten:
		default:
			if !m.lastKnown {
				out = m.toOthers(LossReport{Nonce: m.o.Life})
			}
			if m.id.Phase == Lost {
				out = append(out, m.toOthers(LossReport{Replica: m.id.Replica})...)
			}
		} // While it is rebuilt or re-formed its id is a new one, of which nothing is lost.
		return out
	}
	if !e.HasLeader && m.id.Phase == Member {
		out = m.toOthers(RecoveryReport{m.Recovery()})
	}
	if e.Leads && !m.led {
		out = append(out, Report{Kind: LeaderElected, Node: m.o.Node, Replica: e.Replica})
	}
	m.led = e.Leads
	out = append(out, m.changed(e)...)
	if e.Due && m.o.Rebuilds && e.Leads && e.commits() {
		if next := m.nextChange(e); next != nil {
			out = append(out, next)
		}
	}
	return out
}

// changed reports, at the leader, what changed in the configuration since the last time.
func (m *Machine) changed(e Manage) (out []Effect) {
	was, now := m.members, e.Members
	m.members = &now
	if was == nil || !e.Leads {
		return nil
	}
	for _, r := range was.List {
		if _, still := now.Of(r.ID); !still {
			out = append(out, Report{Kind: ReplicaRemoved, Node: r.Node, Replica: r.ID})
		}
	}
	for _, r := range now.List {
		old, had := was.Of(r.ID)
		switch {
		case !had:
			out = append(out, Report{Kind: ReplicaAdded, Node: r.Node, Replica: r.ID})
		case old.Learner && !r.Learner:
			out = append(out, Report{Kind: ReplicaPromoted, Node: r.Node, Replica: r.ID})
		}
	}
	return out
}

// nextChange is the next change that the range needs; nil for none. Raft takes one at a time
// and drops the others; they are proposed again.
func (m *Machine) nextChange(e Manage) Effect {
	for _, p := range m.o.Nodes {
		r, ok := e.Members.On(p)
		switch {
		case !ok:
			return AddLearner{p}
		case p != m.o.Node && coversLoss(m.reported[p], r.ID):
			return RemoveReplica{r.ID}
		case r.Learner:
			if at := e.progressOf(r.ID); at.Match+caughtUp >= at.Last && at.Match > 0 {
				return Promote{r.ID}
			}
		}
	}
	return nil
}

// coversLoss reports whether a loss report, which names the last id that a node may have taken
// part under, is about a replica there.
func coversLoss(reported, id geo.ReplicaID) bool {
	return id <= reported && replica.RecoveryOf(id) == replica.RecoveryOf(reported)
}

// receive takes a message of another node.
func (m *Machine) receive(e Received) []Effect {
	switch e.Message.(type) {
	case Hello, OtherPlacement: // Also from a node with another configuration.
		if e.From == 0 || e.From == m.o.Node {
			return m.refuse(e.From, "it is from no other node")
		}
	default:
		if e.From == m.o.Node || !slices.Contains(m.o.Nodes, e.From) {
			return m.refuse(e.From, "its sender has no replica of the range")
		}
	}
	switch msg := e.Message.(type) {
	case RecoveryReport:
		out, _ := m.fence(msg.Recovery, e.From)
		return out
	case DurableIndex:
		return []Effect{Deliver{}}
	case LogMark:
		if msg.In == 0 && msg.Replica > m.id.Replica {
			return m.outdated(msg, e.From)
		}
		if m.id.Phase == Member {
			return []Effect{Deliver{}}
		}
	case OtherPlacement:
		return []Effect{PlacementDiffers{e.From}}
	case Hello:
		if msg.Placement != 0 && msg.Placement != m.o.Placement {
			return []Effect{Send{e.From, OtherPlacement{m.o.Placement}}, PlacementDiffers{e.From}}
		}
		joins, differs := m.id.Phase == Joining, m.id.Peers[e.From] != msg.Nonce
		if joins && differs {
			// It has another folder since it answered. All must write down the same nonces: see stampOf.
			delete(m.id.Peers, e.From)
		}
		known := !joins && differs
		return []Effect{Send{e.From, HelloAnswer{Asked: msg.Nonce, Nonce: m.id.Nonce, Known: known}}}
	case HelloAnswer:
		if m.id.Phase != Joining || msg.Asked != m.id.Nonce {
			return nil
		}
		if msg.Known && !plantedbugs.Planted(plantedbugs.EmptyUnderOldID) {
			return []Effect{Lose{fmt.Errorf("%w: node %d knows range %d, which is empty here", replica.ErrLost, e.From, m.o.Range)}}
		}
		m.id.Peers[e.From] = msg.Nonce // It becomes durable with the phase Member.
	case LossReport:
		if msg.Replica == 0 {
			return []Effect{ConfirmLeadership{To: e.From, Nonce: msg.Nonce}}
		}
		m.reported[e.From] = msg.Replica
	case LastID:
		return m.lastGiven(msg)
	}
	return nil
}

// raftMessage lets a message pass that is for the replica here, from a node that may send it. A
// message for a later id, while the replica here is lost, shows that the group has removed the old
// id: the node then starts from nothing under the new one.
func (m *Machine) raftMessage(e RaftMessage) []Effect {
	if e.From == m.o.Node || !slices.Contains(m.o.Nodes, e.From) {
		return m.refuse(e.From, "its sender has no replica of the range")
	}
	theirs := replica.RecoveryOf(e.Sender)
	if theirs >= m.Recovery() { // Else see fence: its node must learn of the recovery that it missed.
		if err := m.claim(e.Members, e.Sender, e.From); err != nil {
			return m.refuse(e.From, err.Error())
		}
	}
	out, ok := m.fence(theirs, e.From)
	if !ok {
		return out
	}
	if e.Receiver > m.id.Replica && m.id.Phase == Lost && m.lastKnown && e.FromLeader && e.CanRebuild {
		out = append(out, Report{Kind: ReplicaRebuilding, Node: m.o.Node, Replica: e.Receiver}, m.become(Rebuilding, e.Receiver), Wipe{})
	}
	if e.Receiver == m.id.Replica && m.id.Phase == Member {
		out = append(out, Deliver{})
	}
	return out
}

// refuse drops a message and reports it, once in a life for each node: a replica that was
// removed, and does not know it, sends many.
func (m *Machine) refuse(from geo.NodeID, why string) []Effect {
	if m.refused[from] {
		return nil
	}
	m.refused[from] = true
	return []Effect{Refused{from, why}}
}

// fence compares the recovery of a message with that of the replica here. ok is false if the
// sender is behind.
func (m *Machine) fence(theirs replica.Recovery, from geo.NodeID) (out []Effect, ok bool) {
	switch ours := m.Recovery(); {
	case theirs < ours:
		return []Effect{Send{from, RecoveryReport{ours}}}, false
	case theirs > ours:
		return m.retire(theirs), true
	}
	return nil, true
}

// retire takes the replica out: the range continues without what it holds.
func (m *Machine) retire(by replica.Recovery) []Effect {
	was, p, as := m.id.Replica, Lost, by.None()
	switch m.id.Phase {
	case Forgotten:
		return nil
	case Joining: // The range exists: this folder is a new one, and may have been in that recovery.
		p, as = Forgotten, was
	}
	m.lastKnown = false
	why := fmt.Errorf("%w: %s", replica.ErrRetired, by)
	out := []Effect{m.become(p, as), Lose{why}, m.forgetGroup()}
	return append(out, Report{Kind: ReplicaLost, Node: m.o.Node, Replica: was, Reason: why.Error()})
}

// forgetGroup drops what the node knew of a configuration that is no more.
func (m *Machine) forgetGroup() Effect {
	m.members = nil
	clear(m.claims)
	clear(m.reported)
	return DropHeld{}
}

// wiped makes a replica a member whose id was never used and whose old data is gone, unless a later recovery has retired it
// meanwhile.
func (m *Machine) wiped() []Effect {
	switch {
	case m.id.Phase != Rebuilding:
		return nil
	case !m.lastKnown:
		return m.wipedAgain()
	}
	return []Effect{StartLog{}, m.become(Member, m.id.Replica), Reopen{}}
}

// reform begins a recovery. The new identity is its commit point: the old id is never used
// again.
func (m *Machine) reform(e Reform) []Effect {
	m.id.Floor = e.Floor
	begin := m.become(Recovering, e.As.Members().List[0].ID)
	return []Effect{begin, Lose{fmt.Errorf("%w: %s", replica.ErrRetired, e.As)}, m.reformState()}
}

// reformState is what follows the commit point of a recovery.
func (m *Machine) reformState() Effect { return ReformState{As: m.Recovery(), Floor: m.id.Floor} }

// reformed ends a recovery, unless a later one has retired the replica meanwhile.
func (m *Machine) reformed() []Effect {
	if m.id.Phase != Recovering {
		return nil
	}
	return []Effect{m.become(Member, m.id.Replica), ReportReformed{}, m.forgetGroup(), Reopen{}}
}
