package operator

import (
	"context"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
)

// errNoSupport: the process was built without what it would answer.
var errNoSupport = errors.New("this process does not show its state")

// Support implements api/admin.Cluster.
func (b *Backend) Support(ctx context.Context, name geo.Location, id geo.NodeID) (out wire.Support, err error) {
	if name == "" {
		if b.o.Support == nil {
			return wire.Support{}, errNoSupport
		}
		return b.o.Support(), nil
	}
	err = b.atNode(name, id, func(l Location) error {
		out, err = l.Support(ctx, id)
		return err
	})
	return out, err
}

// Support implements Location: the nodes that run here are one process.
func (l *Local) Support(_ context.Context, id geo.NodeID) (wire.Support, error) {
	if !l.Location.HasNode(id) {
		return wire.Support{}, wire.NoNode(l.Location.Location(), id)
	}
	if l.Gather == nil {
		return wire.Support{}, errNoSupport
	}
	return l.Gather(), nil
}

// Support implements Location.
func (r *Remote) Support(ctx context.Context, id geo.NodeID) (wire.Support, error) {
	n, err := r.node(id)
	if err != nil {
		return wire.Support{}, err
	}
	out, err := n.Admin.NodeSupport(ctx, r.nodeName(n))
	if errors.Is(err, wire.ErrUnreachable) {
		return out, silent("node "+r.nodeName(n)+" does not answer on its admin port", err)
	}
	return out, err
}
