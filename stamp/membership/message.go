package membership

import (
	"antipode/geo"
	"antipode/stamp/replica"
	"antipode/stamp/room"
	"antipode/stamp/skew"
)

// Message is what the nodes of a stamp report to each other about a range, beside Raft's
// messages. It is between nodes, not replicas. It may be lost, doubled and reordered: every
// message is sent again, or is the answer to one that is.
type Message interface{ isMessage() }

// Hello asks a node whether it knows the range. A node sends it until it has an answer, while
// it joins.
type Hello struct {
	// Nonce is the sender's.
	Nonce Nonce
	// Placement is the sender's; 0 from a version without placements.
	Placement PlacementSum
}

// HelloAnswer answers Hello.
type HelloAnswer struct {
	// Asked is the nonce of the Hello, Nonce is the sender's.
	Asked, Nonce Nonce
	// Known: the sender knows the range, and did not join together with the node that asked.
	Known bool
}

// OtherPlacement answers Hello from a node that has another placement.
type OtherPlacement struct {
	// Placement is the sender's.
	Placement PlacementSum
}

// LossReport is sent by a node whose replica is lost, until the leader has removed it.
type LossReport struct {
	// Replica is the last id that the sender may have taken part under; 0 if it cannot know.
	Replica geo.ReplicaID
	// Nonce is the sender's if Replica is 0.
	Nonce Nonce
}

// LastID answers a LossReport without an id.
type LastID struct {
	// Nonce is the nonce of the report.
	Nonce Nonce
	// Replica is the id that was given last.
	Replica geo.ReplicaID
}

// RecoveryReport is the recovery that the sender's replica belongs to. It is sent to a node
// whose message was of an earlier one, and to all by a node without a leader.
type RecoveryReport struct {
	Recovery replica.Recovery
}

// DurableIndex is the applied index up to which the state of the sender's replica is durable. The log of the
// range is trimmed below the least one. A replica that was rebuilt has less than the one before it on its node had.
type DurableIndex struct {
	// Replica is zero from nodes of earlier versions.
	Replica geo.ReplicaID
	Index   uint64
}

// Latest returns the later of two reports of one node: that of its later replica, or the higher one. Messages are delayed.
func (d DurableIndex) Latest(before DurableIndex) DurableIndex {
	if d.Replica > before.Replica || d.Replica == before.Replica && d.Index > before.Index {
		return d
	}
	return before
}

// Of returns up to where the replica that is a member on a node needs no log; zero if the report is of another one.
func (d DurableIndex) Of(members replica.Members, on geo.NodeID) uint64 {
	if m, _ := members.On(on); d.Replica != 0 && d.Replica != m.ID {
		return 0
	}
	return d.Index
}

// LogMark is an entry up to which a replica has persisted its log, and which is committed: that of the sender, or that of
// the receiver, which the sender remembers (see Marks). Nodes of earlier versions pass it over.
type LogMark struct {
	Replica     geo.ReplicaID
	Index, Term uint64
	// In is the term that the sender was in as it knew that: no later one committed the entry. It is zero in what a node
	// remembers.
	In uint64
}

// LeaderHint is sent by the leader of the range to the nodes without a replica of it.
type LeaderHint struct {
	Term uint64
}

// ClockQuestion and ClockAnswer measure how far the clocks of two nodes are apart. They are about
// no range, and pass the Machine by.
type ClockQuestion struct{ skew.Question }

// ClockAnswer answers ClockQuestion.
type ClockAnswer struct{ skew.Answer }

// RoomReport is how much room the disk of the sender has. It is about no range, as those about clocks.
type RoomReport struct{ Level room.Level }

func (Hello) isMessage()          {}
func (HelloAnswer) isMessage()    {}
func (OtherPlacement) isMessage() {}
func (LossReport) isMessage()     {}
func (LastID) isMessage()         {}
func (RecoveryReport) isMessage() {}
func (DurableIndex) isMessage()   {}
func (LogMark) isMessage()        {}
func (LeaderHint) isMessage()     {}
func (ClockQuestion) isMessage()  {}
func (ClockAnswer) isMessage()    {}
func (RoomReport) isMessage()     {}
