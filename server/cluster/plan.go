package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"antipode/api/admin"
	"antipode/geo"
	"antipode/server/config"
	"antipode/server/dev"
)

// stamp is the stamp name in all certificates: both locations have one authority.
const stamp = "cluster"

// nodes is how many nodes a location has.
const nodes = 3

// Offsets from a node's first port; its front end and admin port are as in antipode dev.
const (
	nodeStep   = 100
	offsetNode = 10
	offsetNATS = 20
	offsetPub  = 22
	offsetHop  = 30
	// These are from the gateway's first port: offsetMetrics is that of the name server's metrics.
	offsetWitness        = 40
	offsetWitnessMetrics = 41
	offsetMetrics        = 54
)

// Options says where a cluster is.
type Options struct {
	// Dir is the folder of certificates, configurations, logs and data.
	Dir string
	// PortBase is the gateway's first port. Location i, from 0, has ports from
	// PortBase + 1000*(i+1) on: node 1 has those of the location in antipode dev, nodes 2
	// and 3 have those 100 and 200 above.
	PortBase int
	// Binary is the path of antipode.
	Binary string
	// Configure changes the configuration of a node. Nil changes nothing.
	Configure func(c *config.Node)
	// Witness: a witness runs too (R21), and Lease is how long its leases live; empty means the default of witness.yaml.
	Witness bool
	Lease   config.Duration
	// DNSZone is the zone of a name server, which runs too, and one of those of the nodes and the gateway; empty for none.
	DNSZone geo.Zone
	// OnWait is called with what a start waits for, after each failed attempt. May be nil.
	OnWait func(what string)
	// between is what Prepare was given, and nil elsewhere: it may open what it names.
	between Between
}

// Between returns where the process from reaches an address of the process to, for one use. Tests place proxies between
// processes. Admin ports are always reached directly.
type Between func(from, to string, u Use, address string) string

// GatewayName is the name of the gateway's process, WitnessName that of the witness and of its place, NamesName that of the
// name server. Nodes are named by wire.NodeName.
const (
	GatewayName = "gateway"
	WitnessName = "witness"
	NamesName   = "names"
)

// Use is what a process uses an address of another one for.
type Use string

// The uses: calls and messages between nodes, the publishes into the bus of a node, the routes between
// the servers of a bus, requests that are passed on, and calls to the witness.
const (
	Calls  Use = "calls"
	Bus    Use = "bus"
	Routes Use = "routes"
	Hops   Use = "hops"
	Leases Use = "leases"
)

func (o Options) via(from, to string, u Use, address string) string {
	if o.between == nil {
		return address
	}
	return o.between(from, to, u, address)
}

// host is where everything listens.
const host = "127.0.0.1"

// member is a process of the cluster.
type member struct {
	name    string
	command string // of antipode
	config  any    // contents of its configuration file
}

// Command is the command line of a process of the cluster.
type Command struct {
	Name string
	Args []string
}

// Prepare writes certificates and configurations and returns the command lines, for callers that
// do not use Start. It asks between, which may be nil, once for each address.
func (o Options) Prepare(between Between) ([]Command, error) {
	o.between = between
	var out []Command
	members := o.plan()
	for _, m := range members {
		out = append(out, Command{m.name, o.args(m)})
	}
	return out, o.prepare(members)
}

// locations in the order of antipode dev.
func locations() []geo.Location { return []geo.Location{dev.North, dev.South} }

// node is a node of a location, both counted from 0.
type node struct{ location, number int }

func (o Options) ports(n node) dev.Ports {
	p := dev.Ports{Host: host, Base: o.PortBase}.At(n.location)
	p.Base += n.number * nodeStep
	return p
}

func (o Options) at(n node, offset int) string {
	return net.JoinHostPort(host, strconv.Itoa(o.ports(n).Base+offset))
}

func (n node) id() geo.NodeID { return geo.NodeID(n.number + 1) }

func (n node) name() string { return fmt.Sprintf("%s-%d", locations()[n.location], n.id()) }

// PortBaseMax is the greatest port base: below that of antipode dev by the ports of two nodes.
const PortBaseMax = dev.PortBaseMax - (nodes-1)*nodeStep

// Gateway returns the ports of the gateway.
func (o Options) Gateway() dev.Ports { return dev.Ports{Host: host, Base: o.PortBase} }

// NodePorts returns the ports of a node, location and node counted from 0.
func (o Options) NodePorts(location, number int) dev.Ports { return o.ports(node{location, number}) }

// Ports lists every address that a process of the cluster may listen on.
func (o Options) Ports() []string {
	o.Witness, o.DNSZone = true, geo.LocalZone
	var out []string
	for _, p := range o.listeners() {
		out = append(out, p.address)
	}
	return out
}

// listener is an address that a process of the cluster listens on, and what for.
type listener struct {
	process, what, address string
	// udp: over UDP too.
	udp bool
}

// listeners lists the addresses that processes of the cluster listen on.
func (o Options) listeners() (out []listener) {
	add := func(process, what, address string) {
		out = append(out, listener{process: process, what: what + " of " + process, address: address})
	}
	services := func(process string, p dev.Ports) {
		add(process, "admin", p.Admin())
		for _, s := range geo.Services {
			add(process, s.String(), p.Of(s))
		}
	}
	services(GatewayName, o.Gateway())
	for _, n := range o.nodeNames() {
		services(n.name(), o.ports(n))
		add(n.name(), "calls", o.at(n, offsetNode))
		add(n.name(), "NATS", o.at(n, offsetNATS))
		add(n.name(), "NATS clients", o.at(n, offsetPub))
		add(n.name(), "forwarded requests", o.at(n, offsetHop))
	}
	if o.Witness {
		out = append(out, listener{process: WitnessName, what: "the witness", address: o.witness()})
		add(WitnessName, "metrics", o.WitnessMetrics())
	}
	if o.DNSZone != "" {
		out = append(out, listener{process: NamesName, what: "the name server", address: o.Gateway().DNS(), udp: true})
		add(NamesName, "metrics", o.NamesMetrics())
	}
	return out
}

// NamesMetrics is where the name server has its metrics, if there is one.
func (o Options) NamesMetrics() string {
	return net.JoinHostPort(host, strconv.Itoa(o.PortBase+offsetMetrics))
}

// names is the configuration of the name server.
func (o Options) names() config.DNS {
	c := config.DNS{
		Listen: config.DNSListen{DNS: o.Gateway().DNS(), Metrics: o.NamesMetrics()}, Zone: o.DNSZone,
		Data: filepath.Join(o.folder(NamesName), "data"), Servers: []config.DNSHost{{Name: "ns." + o.DNSZone, Addresses: []string{host}}},
	}
	for l, name := range locations() {
		at := config.DNSLocation{Name: name, Addresses: []string{host}}
		for i := range nodes {
			at.Admin = append(at.Admin, o.ports(node{l, i}).Admin())
		}
		c.Locations = append(c.Locations, at)
	}
	return c
}

// zones are those of the nodes and the gateway; nil means the default.
func (o Options) zones() []geo.Zone {
	if o.DNSZone == "" {
		return nil
	}
	return []geo.Zone{geo.LocalZone, o.DNSZone}
}

// witness is where the witness listens, if there is one.
func (o Options) witness() string {
	return net.JoinHostPort(host, strconv.Itoa(o.PortBase+offsetWitness))
}

// WitnessMetrics is where the witness has its metrics, if there is one.
func (o Options) WitnessMetrics() string {
	return net.JoinHostPort(host, strconv.Itoa(o.PortBase+offsetWitnessMetrics))
}

// plan lists the processes, the gateway last.
func (o Options) plan() []member {
	var out []member
	if o.Witness {
		out = append(out, member{WitnessName, "witness", config.Witness{
			Stamp: stamp, Location: WitnessName, Locations: locations(), Data: filepath.Join(o.folder(WitnessName), "data"),
			Listen: o.witness(), Metrics: o.WitnessMetrics(), Lease: o.Lease, TLS: o.tls(WitnessName),
		}})
	}
	if o.DNSZone != "" {
		out = append(out, member{NamesName, "dns", o.names()})
	}
	gateway := config.Gateway{Zones: o.zones(), Listen: config.GatewayListen{
		Blob: o.Gateway().Of(geo.Blob), Queue: o.Gateway().Of(geo.Queue), Table: o.Gateway().Of(geo.Table), Admin: o.Gateway().Admin(),
	}, Admin: o.admin(), TLS: o.tls(GatewayName)}
	for l, name := range locations() {
		at := config.GatewayLocation{Name: name}
		for i := range nodes {
			n := node{l, i}
			p := o.ports(n)
			out = append(out, member{n.name(), "node", o.nodeConfig(n)})
			// A node's proof that it has the admin token names the address it is reached at, so
			// a proxy before the admin port would break it.
			at.Nodes = append(at.Nodes, config.GatewayNode{
				ID: n.id(), Hop: o.via(GatewayName, n.name(), Hops, o.at(n, offsetHop)), Admin: p.Admin(),
			})
		}
		gateway.Locations = append(gateway.Locations, at)
	}
	return append(out, member{GatewayName, "gateway", gateway})
}

func (o Options) nodeConfig(n node) config.Node {
	p := o.ports(n)
	dir := o.folder(n.name())
	c := config.Node{
		Stamp: stamp, ID: n.id(), Name: n.name(), Location: locations()[n.location],
		FaultDomain: domain("f", n.number), UpgradeDomain: domain("u", n.number), Data: filepath.Join(dir, "data"),
		Listen: config.Listen{Node: o.at(n, offsetNode), Blob: p.Of(geo.Blob), Queue: p.Of(geo.Queue), Table: p.Of(geo.Table), Hop: o.at(n, offsetHop), Admin: p.Admin()},
		Admin:  o.admin(),
		Zones:  o.zones(),
		TLS:    o.tls(n.name()),
		NATS:   config.NATS{Mode: config.Cluster, Client: o.at(n, offsetPub), Listen: o.at(n, offsetNATS)},
		Pair:   config.Pair{Location: locations()[1-n.location]},
	}
	for i := range nodes {
		far := node{1 - n.location, i}
		via := func(u Use, address string) string { return o.via(n.name(), far.name(), u, address) }
		c.Pair.Nodes = append(c.Pair.Nodes, via(Calls, o.at(far, offsetNode)))
		c.Pair.NATS = append(c.Pair.NATS, via(Bus, o.at(far, offsetPub)))
		c.Pair.Hops = append(c.Pair.Hops, via(Hops, o.at(far, offsetHop)))
		if i == n.number {
			continue
		}
		near := node{n.location, i}
		via = func(u Use, address string) string { return o.via(n.name(), near.name(), u, address) }
		c.NATS.Routes = append(c.NATS.Routes, via(Routes, o.at(near, offsetNATS)))
		c.Peers = append(c.Peers, config.Peer{
			ID: near.id(), Name: near.name(), Address: via(Calls, o.at(near, offsetNode)),
			Hop:         via(Hops, o.at(near, offsetHop)),
			FaultDomain: domain("f", i), UpgradeDomain: domain("u", i),
		})
	}
	if o.Witness {
		c.Witness = config.WitnessAddress{Location: WitnessName, Address: o.via(n.name(), WitnessName, Leases, o.witness())}
	}
	if o.Configure != nil {
		o.Configure(&c)
	}
	return c
}

// tls returns the certificate files of a process.
func (o Options) tls(name string) config.TLS {
	dir := o.folder(name)
	return config.TLS{CA: filepath.Join(dir, caCert), Cert: filepath.Join(dir, nodeCert), Key: filepath.Join(dir, nodeKey)}
}

// admin is the section admin of all processes, which share one token.
func (o Options) admin() config.Admin {
	return config.Admin{TokenFile: filepath.Join(o.Dir, admin.TokenFileName)}
}

func domain(kind string, number int) string { return kind + strconv.Itoa(number+1) }

// folder is the folder of a process.
func (o Options) folder(name string) string { return filepath.Join(o.Dir, name) }
