package record

import (
	"antipode/geo"
)

// MoveStep is a step of a failover that this location has committed.
type MoveStep string

// The steps. They are the kinds of events: never rename one.
const (
	MoveBegun   MoveStep = "failover-begun"
	MoveClosed  MoveStep = "failover-closed"
	MoveOffered MoveStep = "failover-offered"
	MoveEnded   MoveStep = "failover-ended"
	// MoveTaken is at the new primary, MoveFollowed at the former one.
	MoveTaken    MoveStep = "failover-taken"
	MoveFollowed MoveStep = "failover-followed"
)

// MoveSteps returns all steps.
func MoveSteps() []MoveStep {
	return []MoveStep{MoveBegun, MoveClosed, MoveOffered, MoveEnded, MoveTaken, MoveFollowed}
}

// Moved is a MoveStep of an account.
type Moved struct {
	Step    MoveStep
	Account geo.Account
	// Primary and Secondary are those of the record that the step is of, and Epoch is its epoch.
	Primary, Secondary geo.Location
	Epoch              geo.Epoch
	// Reason is why a failover ends without effect.
	Reason string
}
