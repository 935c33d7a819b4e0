package location

import "context"

// Set is the locations that this process runs, whole or in part.
type Set []*Location

// Look is Location.Look of each.
func (s Set) Look(ctx context.Context) {
	for _, l := range s {
		l.Look(ctx)
	}
}
