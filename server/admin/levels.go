package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Finalize implements api/admin.Cluster. The floor of all locations rises first, and then what is active: so a location
// that gets what the other one writes at the level has its floor. It may be called again after any failure.
func (b *Backend) Finalize(ctx context.Context, in wire.Finalize) (wire.Finalized, error) {
	s, err := b.Status(ctx)
	if err != nil {
		return wire.Finalized{}, err
	}
	out, err := toFinalize(s.Locations, in)
	if err != nil || !out.Raised {
		return out, err
	}
	for step, active := range []uint32{0, out.Level} {
		for _, l := range s.Locations {
			to := wire.Levels{Floor: out.Level, Active: max(active, l.Levels.Active)}
			if _, err := b.RaiseLevels(ctx, l.Name, to); err != nil {
				return wire.Finalized{}, adding(err, fmt.Sprintf("; location %s is not finalized (step %d of 2): finalize again", l.Name, step+1))
			}
		}
	}
	return out, nil
}

// toFinalize decides at which level locations are finalized, and whether any of them has to be raised to it.
func toFinalize(locations []wire.Location, in wire.Finalize) (out wire.Finalized, err error) {
	var names []geo.Location
	for _, l := range locations {
		names = append(names, l.Name)
	}
	out.Level, out.Locations = in.Level, names
	lowest, lowestOf := uint32(0), ""
	for _, l := range locations {
		if l.Peer != "" && !slices.Contains(names, l.Peer) {
			return out, notUpgraded("this admin port sees location %s alone, and not %s, which gets what it writes: ask that of the gateway", l.Name, l.Peer)
		}
		if l.Levels == nil {
			return out, notUpgraded("location %s does not say its levels: it is %s", l.Name, l.State)
		}
		for _, n := range l.Nodes {
			if slices.Contains(in.Without, n.Name) {
				continue
			}
			if n.State != wire.Running {
				return out, notUpgraded("node %s is %s, so what its program knows is not seen: start it, or, if it is away for long, name it with --without", n.Name, n.State)
			}
			if lowestOf == "" || n.Level < lowest {
				lowest, lowestOf = n.Level, n.Name
			}
		}
	}
	if out.Level == 0 {
		out.Level = lowest
	}
	if lowest == 0 {
		return out, notUpgraded("node %s runs a version without feature levels: upgrade it first", lowestOf)
	}
	if lowest < out.Level {
		return out, notUpgraded("the program of node %s knows level %d at most, and not %d: upgrade it first", lowestOf, lowest, out.Level)
	}
	for _, l := range locations {
		out.Raised = out.Raised || *l.Levels != wire.Levels{Floor: out.Level, Active: out.Level}
		if l.Levels.Floor > out.Level {
			return out, notUpgraded("location %s is at level %d already: levels never fall", l.Name, l.Levels.Floor)
		}
	}
	return out, nil
}

func notUpgraded(format string, args ...any) error {
	return &wire.Error{Status: http.StatusConflict, Code: wire.CodeNotUpgraded, Message: "cannot finalize the upgrade: " + fmt.Sprintf(format, args...)}
}

// RaiseLevels implements api/admin.Cluster.
func (b *Backend) RaiseLevels(ctx context.Context, l geo.Location, to wire.Levels) (wire.Levels, error) {
	return ask(b, l, func(l Location) (wire.Levels, error) { return l.RaiseLevels(ctx, to) })
}

// RaiseLevels implements Location.
func (l *Local) RaiseLevels(ctx context.Context, to wire.Levels) (wire.Levels, error) {
	return to, l.Location.RaiseLevels(ctx, to)
}

// RaiseLevels implements Location.
func (r *Remote) RaiseLevels(ctx context.Context, to wire.Levels) (wire.Levels, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Levels, error) {
		return c.RaiseLevels(ctx, r.Location, to)
	})
}
