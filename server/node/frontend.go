package node

import (
	"context"
	"net"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/outbound"
	"antipode/server/listen"
)

// newAPI builds the node's front end.
func (n *Node) newAPI() *api.Server {
	c := n.o.Config
	o := api.Options{Zones: c.Zones, Hosts: append([]string{c.Listen.Blob, c.Listen.Queue, c.Listen.Table}, c.Hosts...), Clock: n.o.Clock, IDs: n.ids, Logger: n.o.Logger, Leader: n.leader, Leaderless: n.leaderless}
	o.RequestsMax = listen.ConnsMax()
	n.location.Serve(&o, n.meters)
	o.Leaving = n.location.Draining
	o.Clone = n.findClone
	n.forward = routing.NewForwarder(c.Name, n.endpoints, n.dial).WithTLS(n.keyring.HopClientConfig(c.Location, c.Pair.Location))
	o.Forward = n.forward
	n.outside = outbound.NewClient(outbound.Options{List: c.Outbound()})
	o.Outside = n.outside
	return api.NewServer(o)
}

// endpoints returns the addresses of a service's front ends in the other location.
func (n *Node) endpoints(l geo.Location, s geo.Service) []string {
	p := n.o.Config.Pair
	if l != p.Location {
		return nil
	}
	if len(p.Hops) > 0 {
		var out []string
		for _, address := range p.Hops {
			out = append(out, routing.HopAddress(address, s))
		}
		return out
	}
	switch s {
	case geo.Blob:
		return p.Endpoints.Blob
	case geo.Queue:
		return p.Endpoints.Queue
	default:
		return p.Endpoints.Table
	}
}

// dial connects to nodes of this location directly, and to the other location over the link.
func (n *Node) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for _, p := range n.peers {
		if addr == p.Hop {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	}
	return n.link.Dial(ctx, network, addr)
}

// leaderless implements api.Options.Leaderless.
func (n *Node) leaderless(r geo.RangeID) bool {
	stamp, err := n.location.Stamp()
	return err == nil && stamp.Leaderless(r)
}

// leader implements routing.Leader.
func (n *Node) leader(r geo.RangeID, s geo.Service) (addr string, here bool) {
	stamp, err := n.location.Stamp()
	if err != nil {
		return "", false
	}
	id, known := stamp.LeaderNode(r)
	if !known {
		return "", false
	}
	return routing.HopAddress(n.peers[id].Hop, s), id == n.id
}

// hopListener takes the requests that other front ends of the deployment forward to this node.
func (n *Node) hopListener() listen.Listener {
	c := n.o.Config
	isPeer := func(id geo.NodeID) bool {
		_, is := n.peers[id]
		return is
	}
	return listen.Listener{Addr: c.Listen.Hop, Handler: n.api.HopHandler(), TLS: n.keyring.HopServerConfig(isPeer, c.Pair.Location), What: c.Name + " hops"}
}
