package catalog

import (
	"antipode/geo"
)

// Move is how far the planned move of an account to its secondary is (R19). It is part of an operation of the kind
// OperationMove, at the present primary.
type Move struct {
	Phase MovePhase `json:"phase,omitempty"`
	// Until is after what time, by the wall clock, the move ends by itself if nothing was taken.
	Until geo.Timestamp `json:"until,omitempty"`
	// Claim is the number of the epoch that the secondary is offered; zero before the phase MoveOffered.
	Claim geo.EpochNumber `json:"claim,omitempty"`
	// Reason is why the move ends without effect, in words for people; empty while it does not.
	Reason string `json:"reason,omitempty"`
}

// MovePhase is a phase of a move. It is in catalog rows: never rename a value.
type MovePhase string

// The phases, in their order. MoveEnding follows each of the others.
const (
	// MoveDraining waits until little is on its way to the secondary, and the streams move. Clients notice nothing.
	MoveDraining MovePhase = "draining"
	// MoveClosing closes the gates, and waits until the secondary has all that was committed. The primary takes no
	// writes; reads go on.
	MoveClosing MovePhase = "closing"
	// MoveOffered has offered the account to the secondary, which may have taken it. Until that is known, the
	// location serves the account under no name but -secondary.
	MoveOffered MovePhase = "offered"
	// MoveEnding opens the gates again: the secondary has not taken the account, and cannot any more.
	MoveEnding MovePhase = "ending"
)

func (m Move) describe() string {
	switch m.Phase {
	case MoveDraining:
		return "a planned failover: it waits until little is on its way to the other location"
	case MoveClosing:
		return "a planned failover: writes are stopped, and the rest is on its way to the other location"
	case MoveOffered:
		return "a planned failover: the other location takes over, or has"
	case MoveEnding:
		return "the end of a planned failover without effect: " + m.Reason
	}
	return "a planned failover"
}

// Moves reports whether a planned move of the account is under way, at its primary.
func (a *Account) Moves() bool { return a.Operation != nil && a.Operation.Kind == OperationMove }

// Closed reports whether the primary takes no writes of the account since it moves.
func (a *Account) Closed() bool { return a.Turn%2 == 1 }

// Offered reports whether the other location may have taken the account: nothing that is read or written under the
// primary's name may be served by this record (R19).
func (a *Account) Offered() bool { return a.Moves() && a.Operation.Move.Phase == MoveOffered }
