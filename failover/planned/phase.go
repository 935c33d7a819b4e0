package planned

import (
	"antipode/directory/record"
	"antipode/services/catalog"
)

// moveSteps are the steps with which phases begin.
var moveSteps = map[catalog.MovePhase]record.MoveStep{ //nolint:gochecknoglobals // A table.
	catalog.MoveClosing: record.MoveClosed, catalog.MoveOffered: record.MoveOffered, catalog.MoveEnding: record.MoveEnded,
}
