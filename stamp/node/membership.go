package node

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
)

// How a lost replica comes back (R4), each step an event:
//
//	its node      says that it is lost, to all peers, again and again
//	the leader    removes its id                          replica-removed
//	the leader    adds a learner on the node, a new id    replica-added
//	its node      hears the new id, drops the old data    replica-rebuilding
//	the leader    feeds it, by log or by snapshot
//	the leader    promotes it when it has caught up       replica-promoted
//
// The new id must be one that the node never took part under. A node whose folder is gone
// does not know which it did: it may have been rebuilt before, and its newest id is still a
// member, to which the leader speaks. So it is deaf until the leader has told it, in a round
// that confirms that it leads, which id was given last: those above are new.
//
// Removal and the rest are committed by a quorum of the trusted replicas. Without one
// nothing moves, and the range answers 503 until an operator re-forms it: recover.go.

// Of the changes of a configuration.
const (
	// changeTicks is how many ticks lie between two proposals.
	changeTicks = 10
	// caughtUp is how many entries a learner may miss when it is promoted.
	caughtUp = 64
)

// tendMembers reports this node's lost replicas and moves on what it leads, once a tick.
func (n *Node) tendMembers() {
	for _, r := range n.ranges {
		rep, id := r.Replica(), r.ID()
		if rep.Lost() != nil {
			if n.ticks%changeTicks == 0 && n.takesSnapshots() {
				for _, p := range n.placement.Of(id) {
					if p != n.o.ID {
						n.reportLost(p, id)
					}
				}
			}
			continue
		}
		if lead, _ := rep.Leader(); lead == 0 && n.identities[id].phase == member {
			n.askRecovery(id)
		}
		n.noteLeader(r)
		n.noteMembers(r, rep.Members())
		if n.ticks%changeTicks == 0 && n.takesSnapshots() && r.Leading() && commits(rep) {
			if err := n.changeMembers(id, rep); err != nil {
				n.o.Logger.Warn("cannot change the replicas of a range now", "range", id, "error", err)
			}
		}
	}
}

// commits reports whether a change of the configuration has whom it needs: two in sync, or
// the survivor of a recovery, which is a quorum by itself.
func commits(rep *replica.Replica) bool {
	return rep.InSync() >= 2 || len(rep.Members().Voters()) == 1
}

// keepLost makes it durable that a replica is lost, in the pass that found it: what gave
// it away may not show again after a restart.
func (n *Node) keepLost() error {
	for _, r := range n.ranges {
		id, reason := r.ID(), r.Replica().Lost()
		d := n.identities[id]
		if reason == nil || d.phase == lost || d.phase == forgotten {
			continue
		}
		p, as := lost, d.replica
		if d.phase == joining { // The range is there, and this folder is new.
			p = forgotten
		}
		if err := n.become(id, p, as); err != nil {
			return err
		}
		n.event(Event{Kind: ReplicaLost, Range: id, Node: n.o.ID, Replica: as, Reason: reason.Error()})
	}
	return nil
}

// reportLost tells a node that the replica here is lost, and under which id.
func (n *Node) reportLost(to geo.NodeID, id geo.RangeID) {
	if d := n.identities[id]; d.phase == forgotten {
		n.tell(to, id, msgLost, 0, d.nonce, false)
	} else {
		n.tell(to, id, msgLost, uint64(d.replica), 0, false)
	}
}

// tellGiven tells a node whose folder is new which replica id was given last, if this node
// leads and once it knows that it still does: a leader of before could name one that is too
// low.
func (n *Node) tellGiven(id geo.RangeID, to geo.NodeID, nonce uint64) {
	r := n.byID[id]
	r.Confirm(func(err error) {
		if err == nil {
			n.tell(to, id, msgGiven, uint64(r.Machine.Members().Next-1), nonce, false)
		}
	})
}

// hearGiven ends that this node does not know which ids it took part under: up to that one,
// it may have been each.
func (n *Node) hearGiven(id geo.RangeID, m *pb.Message) error {
	d, last := n.identities[id], geo.ReplicaID(m.GetIndex())
	if d.phase != forgotten || m.GetLogTerm() != d.nonce {
		return nil
	}
	n.event(Event{Kind: ReplicaLost, Range: id, Node: n.o.ID, Replica: last, Reason: "its folder is a new one; a leader told which id was the last"})
	return n.become(id, lost, last)
}

// coversLoss reports whether a report, which names the last id that a node may have taken
// part under, is about a replica there.
func coversLoss(reported, id geo.ReplicaID) bool {
	return id <= reported && replica.RecoveryOf(id) == replica.RecoveryOf(reported)
}

// changeMembers proposes the next change that the range needs, if any. Raft takes one at
// a time and drops the others; they are proposed again.
func (n *Node) changeMembers(id geo.RangeID, rep *replica.Replica) error {
	members := rep.Members()
	for _, p := range n.placement.Of(id) {
		m, ok := members.On(p)
		switch {
		case !ok:
			return rep.AddLearner(p)
		case p != n.o.ID && coversLoss(n.reported[id][p], m.ID):
			return rep.Remove(m.ID)
		case m.Learner:
			if match, last := rep.Match(m.ID); match+caughtUp >= last && match > 0 {
				return rep.Promote(m.ID)
			}
		}
	}
	return nil
}

// noteMembers tells as events what changed in the configuration since the last look, at
// the leader.
func (n *Node) noteMembers(r *ranges.Range, now replica.Members) {
	id := r.ID()
	was, seen := n.seen[id]
	n.seen[id] = now
	if !seen || !r.Leading() {
		return
	}
	for _, m := range was.List {
		if _, still := now.Of(m.ID); !still {
			n.event(Event{Kind: ReplicaRemoved, Range: id, Node: m.Node, Replica: m.ID})
		}
	}
	for _, m := range now.List {
		old, had := was.Of(m.ID)
		switch {
		case !had:
			n.event(Event{Kind: ReplicaAdded, Range: id, Node: m.Node, Replica: m.ID})
		case old.Learner && !m.Learner:
			n.event(Event{Kind: ReplicaPromoted, Range: id, Node: m.Node, Replica: m.ID})
		}
	}
}

// addressed reports whether a Raft message is for the replica that this node holds. One
// for a later id, while the one here is lost, is the group's word that the old id is no
// member any more: the node then begins anew under that id.
func (n *Node) addressed(e Envelope) (bool, error) {
	to := replica.To(e.Message)
	if d := n.identities[e.Range]; to > d.replica && d.phase == lost && fromLeader(e.Message) {
		if err := n.rebuild(e.Range, to); err != nil {
			return false, err
		}
	}
	return to == n.byID[e.Range].Replica().ID() && n.identities[e.Range].phase == member, nil
}

func fromLeader(m *pb.Message) bool {
	return m.GetType() == pb.MsgApp || m.GetType() == pb.MsgHeartbeat
}

// rebuild drops what this node holds of a range and begins anew under another id. It
// is durable before, and again after: a crash in between begins it again.
func (n *Node) rebuild(id geo.RangeID, as geo.ReplicaID) error {
	release, ok := n.snapshots.Reserve(id)
	if !ok { // One is received for the old id, and is about to end.
		return nil
	}
	defer release()
	n.event(Event{Kind: ReplicaRebuilding, Range: id, Node: n.o.ID, Replica: as})
	if err := n.become(id, rebuilding, as); err != nil {
		return err
	}
	if err := n.wipe(id); err != nil {
		return err
	}
	return n.reopen(id, nil)
}

// wipe removes the data of a replica whose id was never used, and makes it a member.
func (n *Node) wipe(id geo.RangeID) error {
	if err := n.snapshots.Empty(id); err != nil {
		return err
	}
	batch := n.log.NewBatch()
	if err := n.logs[id].Reset(batch, 0, 0); err != nil {
		return err
	}
	if err := batch.Commit(true); err != nil {
		return err
	}
	if err := n.setFirstHardState(n.logs[id]); err != nil {
		return err
	}
	return n.become(id, member, n.identities[id].replica)
}
