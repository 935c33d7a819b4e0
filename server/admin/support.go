package admin

import (
	"context"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// errNoSupport: the process was built without what it would answer.
var errNoSupport = errors.New("this process does not show its state")

// Support implements api/admin.Cluster.
func (b *Backend) Support(ctx context.Context, name geo.Location, id geo.NodeID) (wire.Support, error) {
	if name == "" {
		if b.o.Support == nil {
			return wire.Support{}, errNoSupport
		}
		return b.o.Support(), nil
	}
	l, err := b.find(name)
	if err != nil {
		return wire.Support{}, storageerr.InvalidInput.Saying(err.Error())
	}
	return l.Support(ctx, id)
}

// Support implements Location: the nodes that run here are one process.
func (l *Local) Support(context.Context, geo.NodeID) (wire.Support, error) {
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
