package node

import (
	"net"
	"os"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/operator"
)

// backend is what stands behind the node's admin port: the whole location, as its processes
// report it.
func (n *Node) backend() *operator.Backend {
	return operator.New(operator.Options{Clock: n.o.Clock, Locations: []operator.Location{n.members}, Endpoints: n.endpoint, Support: n.support})
}

// describe adds what this process knows of itself to its node.
func (n *Node) describe(out *wire.Node) {
	out.Version, out.UptimeSeconds = n.o.Version, (n.o.Clock.Mono() - n.began).Seconds()
	out.CertificateEnds = wire.Time{Time: n.keyring.NotAfter()}
}

// endpoint is where clients reach a service of this node.
func (n *Node) endpoint(s geo.Service) string {
	host, port, err := net.SplitHostPort(n.o.Config.Listen.Services().Of(s))
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

func (n *Node) newMembers() *operator.Members {
	return operator.NewMembers(operator.MembersOptions{
		Own: &operator.Local{
			Location: n.location, Server: n.server, Clock: n.o.Clock, Alarms: n.meters.Alarms, Warnings: n.o.Warnings,
			Gather: n.support, Process: n.describe,
		},
		Server: n.server, Self: n.id, Nodes: n.nodes(), Calls: n.transport, CatalogLeader: n.catalogLeader, Clones: n.location.Clones,
	})
}

// catalogLeader returns the node that leads the catalog. It is not known while this node was
// elected but does not lead yet.
func (n *Node) catalogLeader() (id geo.NodeID, known bool) {
	stamp, err := n.location.Stamp()
	if err != nil {
		return 0, false
	}
	r := n.location.Route().Catalog()
	id, known = stamp.LeaderNode(r)
	return id, known && (id != n.id || stamp.Leader(r) != nil)
}
