package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	wire "antipode/client/admin"
	"antipode/services/storageerr"
)

// Finalize raises all locations to a feature level. The floor of all locations rises first, and then what is active: so a location
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
			if _, err := at(ctx, b, &raiseLevels, wire.At{Location: l.Name}, to); err != nil {
				return wire.Finalized{}, adding(err, fmt.Sprintf("; location %s is not finalized (step %d of 2): finalize again", l.Name, step+1))
			}
		}
	}
	return out, nil
}

// toFinalize decides at which level locations are finalized, and whether any of them has to be raised to it.
func toFinalize(locations []wire.Location, in wire.Finalize) (out wire.Finalized, err error) {
	var nodes []wire.Node
	for _, l := range locations {
		out.Locations, nodes = append(out.Locations, l.Name), append(nodes, l.Nodes...)
	}
	at := uint32(0)
	for _, l := range locations {
		if l.Peer != "" && !slices.Contains(out.Locations, l.Peer) {
			return out, notUpgraded("this admin port sees location %s alone, and not %s, which gets what it writes: ask that of the gateway", l.Name, l.Peer)
		}
		if l.Levels == nil {
			return out, notUpgraded("location %s does not say its levels: it is %s", l.Name, l.State)
		}
		at = max(at, l.Levels.Floor)
	}
	if err := areNodes(in.Without, nodes); err != nil {
		return out, err
	}
	if out.Level, err = levelOf(nodes, in, at); err != nil {
		return out, err
	}
	for _, l := range locations {
		out.Raised = out.Raised || *l.Levels != wire.Levels{Floor: out.Level, Active: out.Level}
		if l.Levels.Floor > out.Level {
			return out, notUpgraded("location %s is at level %d already: levels never fall", l.Name, l.Levels.Floor)
		}
	}
	return out, nil
}

// areNodes refuses a name that no node has: the node that was meant would be waited for, or another one passed over.
func areNodes(names []string, nodes []wire.Node) error {
	var known []string
	for _, n := range nodes {
		known = append(known, n.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return notFinalized(http.StatusNotFound, wire.CodeNoNode, "there is no node %q to do without: the nodes are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// levelOf returns the level to finalize at, which all nodes know that have to be seen. A location is at the level at.
func levelOf(nodes []wire.Node, in wire.Finalize, at uint32) (uint32, error) {
	highest := uint32(0)
	var lowest *wire.Node
	for i, n := range nodes {
		if slices.Contains(in.Without, n.Name) {
			continue
		}
		if n.State != wire.Running {
			return 0, notUpgraded("node %s is %s, so what its program knows is not seen: start it, or, if it is away for long, name it with --without", n.Name, n.State)
		}
		highest = max(highest, n.Level)
		if lowest == nil || n.Level < lowest.Level {
			lowest = &nodes[i]
		}
	}
	switch {
	case lowest == nil:
		return 0, notUpgraded("no node is left that is seen to know a level: name fewer with --without")
	case lowest.Level == 0:
		return 0, notUpgraded("node %s runs a version without feature levels: upgrade it first", lowest.Name)
	case in.Level == nil:
		return lowest.Level, nil
	case *in.Level == 0 || *in.Level > highest:
		return 0, notFinalized(http.StatusBadRequest, storageerr.InvalidInput.Code,
			"there is no feature level %d: there are %d to %d; without --level it is the highest that all nodes know", *in.Level, at, highest)
	case lowest.Level < *in.Level:
		return 0, notUpgraded("the program of node %s knows level %d at most, and not %d: upgrade it first", lowest.Name, lowest.Level, *in.Level)
	}
	return *in.Level, nil
}

func notUpgraded(format string, args ...any) error {
	return notFinalized(http.StatusConflict, wire.CodeNotUpgraded, format, args...)
}

func notFinalized(status int, code, format string, args ...any) error {
	return &wire.Error{Status: status, Code: code, Message: "cannot finalize the upgrade: " + fmt.Sprintf(format, args...)}
}
