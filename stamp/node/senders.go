package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/replica"
)

// A message between nodes has two senders: the node, which the transport knows from the
// connection, and in Raft's messages the replica that it names. The two are in number spaces
// of their own: in a stamp of five nodes a range on nodes 2, 3 and 4 gives the id 5 to a
// replica that is rebuilt on node 2. So a replica is never looked for on the node of its
// number, but
//
//	in the configuration here     the node that it names
//	above all ids given here      it was added since; the first node of the range that
//	                              speaks for it, until the configuration names it
//	below, and not in it          it was removed: nobody speaks for it any more
//
// An id is given once, so what a configuration ever said of an id stays true. A message that
// contradicts this is dropped: no node speaks for a replica of another.

// claimsMax bounds the replicas of a range, unknown here, that nodes may speak for. Between
// two changes of a configuration as it is applied here there are a few.
const claimsMax = 64

// errSender: a node speaks for a replica that it does not hold.
var errSender = errors.New("node: the sender does not hold the replica that it speaks for")

// takes reports whether a message comes from a node that may send it. The sender of one of
// Raft's is noted, so that it can be answered. Scheduler only.
func (n *Node) takes(e Envelope) bool {
	if e.From == 0 || e.From == n.o.ID {
		n.refuse(e, "it is from no other node")
		return false
	}
	if n.byID[e.Range] == nil {
		return true // hearLeads looks at it.
	}
	switch typ := e.Message.GetType(); {
	case typ == msgHello || typ == msgPlaced: // Also from a node with another configuration.
		return true
	case !slices.Contains(n.placement.Of(e.Range), e.From):
		n.refuse(e, "its sender has no replica of the range")
		return false
	case typ >= msgDurable:
		return true
	}
	if replica.RecoveryOf(replica.From(e.Message)) < n.recovery(e.Range) {
		return true // See fence: its node must hear of the recovery that it missed.
	}
	if err := n.claim(e.Range, replica.From(e.Message), e.From); err != nil {
		n.refuse(e, err.Error())
		return false
	}
	return true
}

// claim notes that a node speaks for a replica of a range, if it may. Scheduler only.
func (n *Node) claim(id geo.RangeID, r geo.ReplicaID, by geo.NodeID) error {
	members, claims := n.byID[id].Replica().Members(), n.claims[id]
	if err := n.claimed(id, members, r, by); err != nil {
		return err
	}
	if r < members.Next {
		return nil
	}
	if first, ok := claims[r]; ok && first != by {
		return fmt.Errorf("%w: node %d for replica %d, which is on node %d", errSender, by, r, first)
	}
	if len(claims) >= claimsMax {
		maps.DeleteFunc(claims, func(r geo.ReplicaID, _ geo.NodeID) bool { return r < members.Next })
	}
	if _, ok := claims[r]; !ok && len(claims) >= claimsMax {
		return fmt.Errorf("%w: node %d for replica %d: too many are unknown", errSender, by, r)
	}
	claims[r] = by
	return nil
}

// claimed says what a configuration has against a node that speaks for a replica: nil for
// nothing.
func (n *Node) claimed(id geo.RangeID, members replica.Members, r geo.ReplicaID, by geo.NodeID) error {
	m, ok := members.Of(r)
	switch {
	case ok && m.Node != by:
		return fmt.Errorf("%w: node %d for replica %d, which is on node %d", errSender, by, r, m.Node)
	case !ok && r < members.Next:
		return fmt.Errorf("%w: node %d for replica %d, which is none any more", errSender, by, r)
	case !slices.Contains(n.placement.Of(id), by):
		return fmt.Errorf("%w: node %d has no replica of the range", errSender, by)
	}
	return nil
}

// nodeOf returns the node of a replica: as the configuration here says, or, where that does
// not name it yet, the one that spoke for it; 0 for none. Scheduler only.
func (n *Node) nodeOf(id geo.RangeID, r geo.ReplicaID) geo.NodeID {
	if m, ok := n.byID[id].Replica().Members().Of(r); ok {
		return m.Node
	}
	return n.claims[id][r]
}

// refusedSender is a node whose messages about a range were refused.
type refusedSender struct {
	id   geo.RangeID
	from geo.NodeID
}

// refuse tells the operator of a message that was dropped, once in a life for each range and
// node: a replica that was removed, and does not know it, sends many.
func (n *Node) refuse(e Envelope, why string) {
	by := refusedSender{e.Range, e.From}
	if n.refused[by] || n.byID[e.Range] == nil {
		return
	}
	n.refused[by] = true
	n.o.Logger.Warn("message dropped", "range", e.Range, "of_node", e.From, "type", e.Message.GetType(), "why", why)
}
