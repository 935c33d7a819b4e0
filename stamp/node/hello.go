package node

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// A node that finds a range empty cannot know whether the stamp is new or its own data
// is gone. It asks all nodes of the range, and takes no part until each has answered: that
// it is empty too, or that it began together with just this node, whose nonce it wrote
// down. If one knows the range, but not the nonce, this node has lost what it promised (R4).
//
// A node says that it is empty only while it has neither voted nor acknowledged, which its
// durable phase shows; so an old answer does no harm.

// Message types of ours, outside Raft's numbers, beside msgDurable. They are between nodes,
// not replicas: the sender is Envelope.From. The message's own From has the node's number
// for versions that read it.
const (
	// msgHello asks about a range: Index is the node's nonce, LogTerm the checksum of its
	// placement, 0 from a version that knows of none.
	msgHello = pb.MessageType(1001)
	// msgHelloResp answers: Index is the nonce that asked, LogTerm the node's own; Reject says
	// that it knows the range without that nonce.
	msgHelloResp = pb.MessageType(1002)
	// msgPlaced answers it where the node has another placement: Index is the checksum.
	msgPlaced = pb.MessageType(1005)
	// msgLost reports a lost replica: Index is the replica's id, 0 from a node that cannot
	// know it, LogTerm then the node's nonce.
	msgLost = pb.MessageType(1003)
	// msgGiven answers that: LogTerm is the nonce, Index the last id that was given.
	msgGiven = pb.MessageType(1007)
)

func (n *Node) tell(to geo.NodeID, id geo.RangeID, typ pb.MessageType, index, logTerm uint64, reject bool) {
	from := uint64(n.o.ID)
	n.o.Transport.Send(n.o.ID, to, []Envelope{{
		Range: id, Message: &pb.Message{Type: &typ, From: &from, Index: &index, LogTerm: &logTerm, Reject: &reject},
	}})
}

// hello asks the peers that have not answered, once a tick while it joins.
func (n *Node) hello() error {
	for _, r := range n.ranges {
		d := n.identities[r.ID()]
		if d.phase != joining || r.Replica().Lost() != nil {
			continue
		}
		on := n.placement.Of(r.ID())
		if len(d.peers) == len(on)-1 {
			if err := n.join(r.ID()); err != nil {
				return err
			}
			continue
		}
		for _, p := range on {
			if _, heard := d.peers[p]; p != n.o.ID && !heard {
				n.tell(p, r.ID(), msgHello, d.nonce, n.placementSum(), false)
			}
		}
	}
	return nil
}

// hear takes a message of our own kinds about a range that is here.
func (n *Node) hear(e Envelope) error {
	id, m, from := e.Range, e.Message, e.From
	d := n.identities[id]
	if d == nil {
		return nil
	}
	switch m.GetType() {
	case msgRecovery:
		_, err := n.fence(id, replica.RecoveryOf(geo.ReplicaID(m.GetIndex())), from)
		return err
	case msgDurable:
		n.hearDurable(id, from, m.GetIndex())
	case msgPlaced:
		n.otherPlacement(from)
	case msgHello:
		if !n.samePlacement(from, id, m.GetLogTerm()) {
			return nil
		}
		n.tell(from, id, msgHelloResp, m.GetIndex(), d.nonce, d.phase != joining && d.peers[from] != m.GetIndex())
	case msgHelloResp:
		if d.phase != joining || m.GetIndex() != d.nonce {
			return nil
		}
		if m.GetReject() && !plantedbugs.Planted(plantedbugs.EmptyUnderOldID) {
			n.byID[id].Replica().Lose(fmt.Errorf("%w: node %d knows range %d, which is empty here", replica.ErrLost, from, id))
			return nil
		}
		d.peers[from] = m.GetLogTerm()
	case msgLost:
		if m.GetIndex() == 0 {
			n.tellGiven(id, from, m.GetLogTerm())
		} else {
			n.reported[id][from] = geo.ReplicaID(m.GetIndex())
		}
	case msgGiven:
		return n.hearGiven(id, m)
	}
	return nil
}

// join makes the replica a member: first its hard state, without which a member is
// lost, then its phase.
func (n *Node) join(id geo.RangeID) error {
	if err := n.setFirstHardState(n.logs[id]); err != nil {
		return err
	}
	if err := n.become(id, member, n.identities[id].replica); err != nil {
		return err
	}
	return n.reopen(id, nil)
}

// setFirstHardState makes the hard state durable that a replica begins with.
func (n *Node) setFirstHardState(log state.RangeLog) error {
	batch := n.log.NewBatch()
	if err := log.SetHardState(batch, hardState(replica.FirstTerm, 0, 0)); err != nil {
		return err
	}
	return batch.Commit(true)
}

func hardState(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}
