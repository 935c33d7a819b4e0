package operator

import (
	"errors"

	wire "antipode/client/admin"
)

// errNoSupport: the process was built without what it would answer.
var errNoSupport = errors.New("this process does not show its state")

// support is what the process knows of itself.
func (b *Backend) support() (wire.Support, error) {
	if b.o.Support == nil {
		return wire.Support{}, errNoSupport
	}
	return b.o.Support(), nil
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
