package location

import (
	"context"
	"slices"

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

// LevelActive is the feature level that is active at all nodes of this process: each writes it once it has applied that of
// the catalog. A node out of service, which applies nothing, does not count. It is Base where none runs.
func (l *Location) LevelActive() feature.Level {
	s, err := l.Stamp()
	if err != nil {
		return feature.Base
	}
	var least []feature.Level
	for _, id := range l.o.Local {
		if n := s.Node(id); n != nil && s.Down(id) == nil {
			if r := n.Range(l.o.Route.Catalog()); r != nil {
				least = append(least, r.Levels().Active())
			}
		}
	}
	if len(least) == 0 {
		return feature.Base
	}
	return slices.Min(least)
}
