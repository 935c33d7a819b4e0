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
	return onNode(ctx, b, &nodeSupport, name, id)
}

// support is what this process knows of itself, if the node runs here.
func (l *Local) support(at wire.At) (wire.Support, error) {
	_, id, err := wire.ParseNodeName(at.Node)
	if err != nil {
		return wire.Support{}, err
	}
	if !l.view().HasNode(id) {
		return wire.Support{}, wire.NoNode(l.Name(), id)
	}
	if l.Gather == nil {
		return wire.Support{}, errNoSupport
	}
	return l.Gather(), nil
}
