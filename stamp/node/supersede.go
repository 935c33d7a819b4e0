package node

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/replica"
)

// The fence of a recovery (R4): two replicas that were away while their range was
// re-formed are a quorum of the old configuration, and would elect a leader beside the
// new one. Every Raft message carries its sender's recovery in the sender's id:
//
//	of an earlier recovery   dropped; its node is told of the later one
//	of a later recovery      the replica here is superseded, durably, before anything else
//
// A superseded replica is a lost one: it is rebuilt as soon as the leader speaks to it. A
// node without a leader asks all others each tick, so that it hears of a recovery in the
// election timeout during which a restarted replica neither votes nor stands. What no
// fence can do: keep those apart from the re-formed range from going on without it, if
// they are a quorum of the old configuration and none of them can hear of it.

// msgRecovery says which recovery the sender's replica belongs to: Index is an id of that
// recovery.
const msgRecovery = pb.MessageType(1004)

// recovery is the one that this node's replica of a range belongs to.
func (n *Node) recovery(id geo.RangeID) replica.Recovery {
	return replica.RecoveryOf(n.identities[id].replica)
}

func (n *Node) tellRecovery(to geo.NodeID, id geo.RangeID) {
	n.tell(to, id, msgRecovery, uint64(n.recovery(id).None()), 0, false)
}

// askRecovery asks all peers for a later recovery.
func (n *Node) askRecovery(id geo.RangeID) {
	for _, p := range n.placement.Of(id) {
		if p != n.o.ID {
			n.tellRecovery(p, id)
		}
	}
}

// fence compares the recovery of what node from sent with that of the replica here. ok is
// false where the sender is behind.
func (n *Node) fence(id geo.RangeID, theirs replica.Recovery, from geo.NodeID) (ok bool, err error) {
	switch ours := n.recovery(id); {
	case theirs < ours:
		n.tellRecovery(from, id)
		return false, nil
	case theirs > ours:
		return true, n.supersede(id, theirs)
	}
	return true, nil
}

// supersede takes the replica out: the range goes on without what it holds.
func (n *Node) supersede(id geo.RangeID, by replica.Recovery) error {
	d := n.identities[id]
	was, p, as := d.replica, lost, by.None()
	switch d.phase {
	case forgotten:
		return nil
	case joining: // The range exists: this folder is one made anew, which may have been in that recovery.
		p, as = forgotten, was
	}
	if err := n.become(id, p, as); err != nil {
		return err
	}
	why := fmt.Errorf("%w: %s", replica.ErrSuperseded, by)
	n.byID[id].Replica().Lose(why)
	n.forgetPeers(id)
	n.event(Event{Kind: ReplicaLost, Range: id, Node: n.o.ID, Replica: was, Reason: why.Error()})
	return nil
}

// forgetPeers drops what the node knew of a configuration that is no more.
func (n *Node) forgetPeers(id geo.RangeID) {
	delete(n.held, id)
	delete(n.seen, id)
	clear(n.claims[id])
	clear(n.reported[id])
}
