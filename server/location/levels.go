package location

import (
	"context"

	wire "antipode/client/admin"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/feature"
)

// RaiseLevels raises the feature levels that the location has committed.
func (l *Location) RaiseLevels(ctx context.Context, to wire.Levels) error {
	return l.Directory.RaiseLevels(ctx, change.Levels{Floor: feature.Level(to.Floor), Active: feature.Level(to.Active)})
}

// levels are those of the catalog, as far as a node of this process has applied them; nil if none runs.
func (l *Location) levels(s *stamp.Stamp) *wire.Levels {
	for _, id := range l.o.Local {
		if n := s.Node(id); n != nil {
			if r := n.Range(l.o.Route.Catalog()); r != nil {
				return &wire.Levels{Floor: uint32(r.Levels().Floor()), Active: uint32(r.Levels().Active())}
			}
		}
	}
	return nil
}
