package membership

import (
	"antipode/geo"
	"antipode/stamp/replica"
)

// Event is what happened to a replica or its node.
type Event interface{ isEvent() }

// Opened follows the opening of the stores.
type Opened struct {
	// Lost is why the stores cannot be trusted; nil if nothing shows that.
	Lost error
	// HardState: the log has one.
	HardState bool
}

// Join comes once a tick.
type Join struct {
	// Lost: the replica found that it is lost.
	Lost bool
}

// Manage comes once a tick, with what the replica knows.
type Manage struct {
	// Lost: the replica found that it is lost. All below is empty then.
	Lost bool
	// Due: a change of the configuration may be proposed, or a loss reported, in this tick.
	Due bool
	// Replica is its Raft id.
	Replica geo.ReplicaID
	// HasLeader: it knows a leader. Leads: it is the leader.
	HasLeader, Leads bool
	Members          replica.Members
	// InSync is how many replicas are in sync; 0 if it does not lead.
	InSync int
	// Learners are how far the learners are; empty if it does not lead.
	Learners []Progress
}

// Progress is how far the leader has fed a replica.
type Progress struct {
	Replica geo.ReplicaID
	// Match is the last index that the replica has, Last that of the leader.
	Match, Last uint64
}

// commits reports whether a change of the configuration has the replicas that it needs: two
// in sync, or the survivor of a recovery, which is a quorum by itself.
func (e Manage) commits() bool { return e.InSync >= 2 || len(e.Members.Voters()) == 1 }

func (e Manage) progressOf(id geo.ReplicaID) Progress {
	for _, p := range e.Learners {
		if p.Replica == id {
			return p
		}
	}
	return Progress{}
}

// ReplicaFailed is for a replica that found that it lost what it had promised.
type ReplicaFailed struct{ Reason error }

// Received is a message of another node.
type Received struct {
	From    geo.NodeID
	Message Message
}

// RaftMessage is the head of one of Raft's messages, from another node.
type RaftMessage struct {
	// From is the node that sent it, as the transport knows it. Sender and Receiver are the
	// replicas that it names.
	From             geo.NodeID
	Sender, Receiver geo.ReplicaID
	// FromLeader: only a leader sends messages of its type.
	FromLeader bool
	// Members is the configuration as applied here.
	Members replica.Members
	// CanRebuild: the folder for staged files of the range is reserved, so that its data may
	// be removed now.
	CanRebuild bool
}

// LeadershipConfirmed is the answer to ConfirmLeadership: this node led after it.
type LeadershipConfirmed struct {
	To    geo.NodeID
	Nonce Nonce
	// Last is the id that was given last.
	Last geo.ReplicaID
}

// Reform is an operator's request to re-form the range from the replica here. As is later than all
// recoveries that are known.
type Reform struct {
	As replica.Recovery
	// Floor is the least time below which nothing may be committed: the other location has received
	// up to there (R6).
	Floor geo.Timestamp
}

// Wiped comes once Wipe is carried out. Other events may come in between.
type Wiped struct{}

// Reformed comes once ReformState is carried out. Other events may come in between.
type Reformed struct{}

func (Opened) isEvent()              {}
func (Join) isEvent()                {}
func (Manage) isEvent()              {}
func (ReplicaFailed) isEvent()       {}
func (Received) isEvent()            {}
func (RaftMessage) isEvent()         {}
func (LeadershipConfirmed) isEvent() {}
func (Reform) isEvent()              {}
func (Wiped) isEvent()               {}
func (Reformed) isEvent()            {}

// Effect is what the node has to do.
type Effect interface{ isEffect() }

// Send sends a message to another node.
type Send struct {
	To      geo.NodeID
	Message Message
}

// SaveIdentity makes the identity durable.
type SaveIdentity struct{ Identity Identity }

// Reopen builds the replica over what the stores hold. Lost says why it cannot be trusted; nil
// if it can.
type Reopen struct{ Lost error }

// Lose takes the replica out: it sends and acknowledges nothing any more.
type Lose struct{ Reason error }

// Wipe removes the rows and the log of the range, durably. It may take long; Wiped follows.
type Wipe struct{}

// StartLog makes the hard state durable with which a replica begins.
type StartLog struct{}

// ReformState applies the whole log to the state, makes the configuration that of a recovery and its
// last time at least Floor, and begins a new log behind it, durably. It may take long; Reformed follows.
type ReformState struct {
	As    replica.Recovery
	Floor geo.Timestamp
}

// ReportReformed reports to the operator what ReformState kept.
type ReportReformed struct{}

// DropHeld drops the messages that wait for payload.
type DropHeld struct{}

// Deliver passes the message of this event on: to the replica, or to the node.
type Deliver struct{}

// Refused reports to the operator that messages of a node are dropped.
type Refused struct {
	From geo.NodeID
	Why  string
}

// PlacementDiffers reports to the operator that a node has another placement.
type PlacementDiffers struct{ Node geo.NodeID }

// ConfirmLeadership asks for LeadershipConfirmed, after a round that confirms that this node
// leads. If it does not, nothing follows.
type ConfirmLeadership struct {
	To    geo.NodeID
	Nonce Nonce
}

// AddLearner proposes a new replica on a node, which is fed and does not vote.
type AddLearner struct{ Node geo.NodeID }

// RemoveReplica proposes that a replica is no member any more.
type RemoveReplica struct{ Replica geo.ReplicaID }

// Promote proposes that a learner votes and counts.
type Promote struct{ Replica geo.ReplicaID }

// Report is a step in the life of a replica, for the operator.
type Report struct {
	Kind    Kind
	Node    geo.NodeID
	Replica geo.ReplicaID
	// Reason may be empty.
	Reason string
}

// Kind is what a Report is about.
type Kind string

// The kinds. Reported by the replica's node:
const (
	ReplicaLost       Kind = "replica-lost"
	ReplicaRebuilding Kind = "replica-rebuilding"
)

// Reported by the leader:
const (
	ReplicaRemoved  Kind = "replica-removed"
	ReplicaAdded    Kind = "replica-added"
	ReplicaPromoted Kind = "replica-promoted"
	LeaderElected   Kind = "leader-elected"
)

func (Send) isEffect()              {}
func (SaveIdentity) isEffect()      {}
func (Reopen) isEffect()            {}
func (Lose) isEffect()              {}
func (Wipe) isEffect()              {}
func (StartLog) isEffect()          {}
func (ReformState) isEffect()       {}
func (ReportReformed) isEffect()    {}
func (DropHeld) isEffect()          {}
func (Deliver) isEffect()           {}
func (Refused) isEffect()           {}
func (PlacementDiffers) isEffect()  {}
func (ConfirmLeadership) isEffect() {}
func (AddLearner) isEffect()        {}
func (RemoveReplica) isEffect()     {}
func (Promote) isEffect()           {}
func (Report) isEffect()            {}
