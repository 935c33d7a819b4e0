package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/replica"
)

// A message between nodes has two senders: the node, which the transport knows from the
// connection, and in Raft's messages the replica that it names. Their numbers are independent:
// in a stamp of five nodes a range on nodes 2, 3 and 4 gives the id 5 to a replica that is
// rebuilt on node 2. So a replica is never looked for on the node of its number, but
//
//	in the configuration here     on the node that it names
//	above all ids given here      it was added since: on the first node of the range that
//	                              sends in its name, until the configuration names it
//	below, and not in it          it was removed: no node may send in its name any more
//
// An id is given once, so what a configuration ever named stays true. A message that
// contradicts this is dropped: no node sends in the name of a replica of another.

// claimsMax bounds the replicas of a range, unknown here, in whose name nodes may send. Between
// two changes of a configuration as it is applied here there are a few.
const claimsMax = 64

// ErrSender: a node sends in the name of a replica that it does not hold.
var ErrSender = errors.New("the sender does not hold the replica in whose name it sends")

// CheckSender returns what a configuration has against a message of node by in the name of a
// replica; nodes are those of the range. Nil: nothing.
func CheckSender(members replica.Members, nodes []geo.NodeID, r geo.ReplicaID, by geo.NodeID) error {
	m, ok := members.Of(r)
	switch {
	case ok && m.Node != by:
		return fmt.Errorf("%w: node %d for replica %d, which is on node %d", ErrSender, by, r, m.Node)
	case !ok && r < members.Next:
		return fmt.Errorf("%w: node %d for replica %d, which was removed", ErrSender, by, r)
	case !slices.Contains(nodes, by):
		return fmt.Errorf("%w: node %d has no replica of the range", ErrSender, by)
	}
	return nil
}

// claim records that a node sends in the name of a replica, if it may.
func (m *Machine) claim(members replica.Members, r geo.ReplicaID, by geo.NodeID) error {
	if err := CheckSender(members, m.o.Nodes, r, by); err != nil {
		return err
	}
	if r < members.Next {
		return nil
	}
	if first, ok := m.claims[r]; ok && first != by {
		return fmt.Errorf("%w: node %d for replica %d, which is on node %d", ErrSender, by, r, first)
	}
	if len(m.claims) >= claimsMax {
		maps.DeleteFunc(m.claims, func(r geo.ReplicaID, _ geo.NodeID) bool { return r < members.Next })
	}
	if _, ok := m.claims[r]; !ok && len(m.claims) >= claimsMax {
		return fmt.Errorf("%w: node %d for replica %d: too many are unknown", ErrSender, by, r)
	}
	m.claims[r] = by
	return nil
}

// NodeOf returns the node of a replica: as the configuration here has it, or, if that does not
// name it yet, the one that sent in its name; 0 for none.
func (m *Machine) NodeOf(members replica.Members, r geo.ReplicaID) geo.NodeID {
	if on, ok := members.Of(r); ok {
		return on.Node
	}
	return m.claims[r]
}
