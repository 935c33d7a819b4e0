package feature

import (
	"errors"
	"fmt"
)

// ErrLater: something was written by a later version than this program, which can neither use nor skip it. Nothing is
// wrong with it: the version that wrote it goes on with all data. So nothing is deleted, set aside or counted as lost
// for it; the node, or what needs it, is out of service until then.
var ErrLater = errors.New("a later version wrote it: start the version that did, nothing was changed here")

// ErrFloor: the program knows less than what the cluster was finalized at. It is ErrLater too.
var ErrFloor = errors.New("the upgrade of this cluster was finalized")

// Later is ErrLater for something with a version.
func Later(what string, version, known uint64) error {
	return fmt.Errorf("%s has version %d, this program knows %d: %w", what, version, known, ErrLater)
}
