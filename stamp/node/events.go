package node

import (
	"antipode/geo"
	"antipode/stamp/membership"
)

// Event is one step in the life of a replica, a range or a node, for an event log.
type Event struct {
	Kind EventKind
	// Range is the range that it is about; 0 for a node as a whole.
	Range geo.RangeID
	// Node is the node that the replica is on, or that it happened to.
	Node geo.NodeID
	// Replica is the replica's id; 0 if it is not about one.
	Replica geo.ReplicaID
	// Reason is the cause in one line; may be empty.
	Reason string
}

// EventKind is what happened.
type EventKind string

// The kinds.
const (
	// Reported by the node of the replica.
	ReplicaLost                 = EventKind(membership.ReplicaLost)
	ReplicaRebuilding           = EventKind(membership.ReplicaRebuilding)
	LaterVersion      EventKind = "later-version" // the leader wrote what this node's version does not know
	SnapshotInstalled EventKind = "snapshot-installed"
	RangeRecovered    EventKind = "range-recovered"
	// Reported by the leader.
	ReplicaRemoved            = EventKind(membership.ReplicaRemoved)
	ReplicaAdded              = EventKind(membership.ReplicaAdded)
	ReplicaPromoted           = EventKind(membership.ReplicaPromoted)
	LeftInSync      EventKind = "left-in-sync"
	ReturnedInSync  EventKind = "returned-in-sync"
	LeaderElected             = EventKind(membership.LeaderElected)
	SnapshotSent    EventKind = "snapshot-sent"
	// WritesSlowed: commands of the range wait for a replica that is fed by a snapshot. WritesNotSlowed: no longer.
	WritesSlowed    EventKind = "writes-slowed"
	WritesNotSlowed EventKind = "writes-not-slowed"
	// LeaderTransferred: because of its clock (R6), or since its node is going to stop, the leader asked the named node to lead.
	LeaderTransferred EventKind = "leader-transferred"
	// Of a node.
	DiskFull    EventKind = "disk-full"
	DiskHasRoom EventKind = "disk-has-room"
	StoreFailed EventKind = "store-failed"
	// ClockOff: its wall clock keeps it from evaluating (R6). ClockAgrees: no longer.
	ClockOff    EventKind = "clock-off"
	ClockAgrees EventKind = "clock-agrees"
	// StoreDamaged: bytes of the state store or the log are not what was written.
	StoreDamaged EventKind = "store-damaged"
	// AsideRemoved: a damaged store that was set aside is removed.
	AsideRemoved   EventKind = "set-aside-removed"
	ChunksRepaired EventKind = "chunks-repaired"
	// NodeRestarted: the node was opened again in its process, after StoreFailed.
	NodeRestarted EventKind = "node-restarted"
	// NodeOutOfService: the node stays closed, after too many failures.
	NodeOutOfService EventKind = "node-out-of-service"
)

// EventKinds are all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		ReplicaLost, ReplicaRebuilding, SnapshotInstalled, RangeRecovered, ReplicaRemoved, ReplicaAdded, ReplicaPromoted, LeftInSync,
		ReturnedInSync, LeaderElected, LeaderTransferred, SnapshotSent, DiskFull, DiskHasRoom, ClockOff, ClockAgrees, StoreFailed,
		StoreDamaged, AsideRemoved, ChunksRepaired, NodeRestarted, NodeOutOfService, LaterVersion, WritesSlowed, WritesNotSlowed,
	}
}

func (n *Node) event(e Event) {
	n.o.Logger.Info("event", "kind", e.Kind, "range", e.Range, "of_node", e.Node, "replica", e.Replica, "reason", e.Reason)
	if n.o.OnEvent != nil {
		n.o.OnEvent(e)
	}
}
