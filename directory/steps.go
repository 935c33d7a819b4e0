package directory

import (
	"antipode/geo"
	"antipode/services/catalog"
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

// moveSteps are the steps with which phases begin.
var moveSteps = map[catalog.MovePhase]MoveStep{ //nolint:gochecknoglobals // A table.
	catalog.MoveClosing: MoveClosed, catalog.MoveOffered: MoveOffered, catalog.MoveEnding: MoveEnded,
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

// OnMove sets what is called after each step, from the goroutine that made it. A step whose answer was lost is not
// reported.
func (d *Directory) OnMove(f func(Moved)) { d.onMove = f }

func (d *Directory) moved(step MoveStep, a *catalog.Account, reason string) {
	if step == MoveEnded {
		d.endings.set(a.Name, ending{why: reason})
	}
	d.onMove(Moved{Step: step, Account: a.Name, Primary: a.Primary, Secondary: a.Secondary, Epoch: a.GeoEpoch(), Reason: reason})
}
