package node

import (
	wire "antipode/client/admin"
	"antipode/server/support"
)

// support is what this process knows of itself.
func (n *Node) support() wire.Support {
	return support.Source{Name: wire.NodeName(n.o.Config.Location, n.id), Config: n.o.Config, Gatherer: n.registry}.Gather()
}
