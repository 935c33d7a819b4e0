package node

import (
	"antipode/geo"
	"antipode/stamp/ranges"
)

// Event is one step in the life of a replica, a range or a node, for an event log.
type Event struct {
	Kind EventKind
	// Range it is about; 0 for a node as a whole.
	Range geo.RangeID
	// Node is the node that the replica is on, or that it happened to.
	Node geo.NodeID
	// Replica is the replica's id; 0 where it is about none.
	Replica geo.ReplicaID
	// Reason says why, in one line; may be empty.
	Reason string
}

// EventKind says what happened.
type EventKind string

// The kinds.
const (
	// Told by the replica's own node.
	ReplicaLost       EventKind = "replica-lost"
	ReplicaRebuilding EventKind = "replica-rebuilding"
	SnapshotInstalled EventKind = "snapshot-installed"
	RangeRecovered    EventKind = "range-recovered"
	// Told by the leader.
	ReplicaRemoved  EventKind = "replica-removed"
	ReplicaAdded    EventKind = "replica-added"
	ReplicaPromoted EventKind = "replica-promoted"
	LeftInSync      EventKind = "left-in-sync"
	ReturnedInSync  EventKind = "returned-in-sync"
	LeaderElected   EventKind = "leader-elected"
	SnapshotSent    EventKind = "snapshot-sent"
	// Of a node.
	DiskFull    EventKind = "disk-full"
	DiskHasRoom EventKind = "disk-has-room"
	StoreFailed EventKind = "store-failed"
	// StoreDamaged: bytes of the state store or the log are not what was written.
	StoreDamaged   EventKind = "store-damaged"
	ChunksRepaired EventKind = "chunks-repaired"
	// NodeRestarted: opened anew in its process, after StoreFailed; NodeOutOfService: not
	// any more, after too many failures.
	NodeRestarted    EventKind = "node-restarted"
	NodeOutOfService EventKind = "node-out-of-service"
)

// EventKinds are all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		ReplicaLost, ReplicaRebuilding, SnapshotInstalled, RangeRecovered, ReplicaRemoved, ReplicaAdded, ReplicaPromoted, LeftInSync,
		ReturnedInSync, LeaderElected, SnapshotSent, DiskFull, DiskHasRoom, StoreFailed,
		StoreDamaged, ChunksRepaired, NodeRestarted, NodeOutOfService,
	}
}

func (n *Node) event(e Event) {
	n.o.Logger.Info("event", "kind", e.Kind, "range", e.Range, "of_node", e.Node, "replica", e.Replica, "reason", e.Reason)
	if n.o.OnEvent != nil {
		n.o.OnEvent(e)
	}
}

// noteInSync tells of a replica that left or returned to the in-sync set of a range that
// is led here.
func (n *Node) noteInSync(id geo.RangeID, of geo.NodeID, in bool) {
	e := Event{Kind: LeftInSync, Range: id, Node: of, Reason: "it did not answer in time; writes go on with the others"}
	if in {
		e.Kind, e.Reason = ReturnedInSync, "it caught up"
	}
	n.event(e)
}

// noteLeader tells that this node began to lead a range since the last look.
func (n *Node) noteLeader(r *ranges.Range) {
	id, leads := r.ID(), r.Leading()
	if leads && !n.led[id] {
		n.event(Event{Kind: LeaderElected, Range: id, Node: n.o.ID, Replica: r.Replica().ID()})
	}
	n.led[id] = leads
}
