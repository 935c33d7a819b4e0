package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"antipode/geo"
)

// Node is the contents of node.yaml.
type Node struct {
	// Stamp is the stamp's name as its certificates have it. Default "antipode".
	Stamp string `yaml:"stamp"`
	// ID of this node within its stamp, from 1.
	ID geo.NodeID `yaml:"node"`
	// Name for people, in logs and metrics. Default LOCATION-ID.
	Name     string       `yaml:"name"`
	Location geo.Location `yaml:"location"`
	// FaultDomain is what fails together with this node, such as a rack;
	// UpgradeDomain what is upgraded together with it.
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
	// Data is the folder of everything that is kept.
	Data string `yaml:"data"`
	// ReserveBytes of the disk of Data stay free: with less a node takes no writes, until
	// there are 512 MiB more. Default 512 MiB.
	ReserveBytes uint64 `yaml:"reserve_bytes"`
	// NameRest is how long the name of a deleted table or container cannot be created
	// again. Default 40s, as the service has it.
	NameRest Duration `yaml:"name_rest"`
	Listen   Listen   `yaml:"listen"`
	Admin    Admin    `yaml:"admin"`
	// Zones are the DNS zones under which accounts have host names of their own,
	// ACCOUNT.SERVICE.ZONE; the same at all nodes of both locations and at gateways.
	// Default localhost.
	Zones []geo.Zone `yaml:"zones"`
	// Peers are the other nodes of the stamp.
	Peers []Peer `yaml:"peers"`
	Pair  Pair   `yaml:"pair"`
	TLS   TLS    `yaml:"tls"`
	NATS  NATS   `yaml:"nats"`
}

// Listen has the addresses this node listens on, host:port; an empty host is every
// address of the machine.
type Listen struct {
	// Node is for peers, over TLS. Default ":10100".
	Node string `yaml:"node"`
	// Blob, Queue and Table are the front end. Defaults ":10000", ":10001", ":10002".
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Hop is the front end for requests that other nodes and gateways hand to this one,
	// over TLS. Default ":10110".
	Hop string `yaml:"hop"`
	// Admin is the admin port. Default "127.0.0.1:10080".
	Admin string `yaml:"admin"`
}

// Services are the addresses of the front end.
func (l Listen) Services() Services { return Services{l.Blob, l.Queue, l.Table} }

// Services are the addresses of a front end, host:port, by service.
type Services struct{ Blob, Queue, Table string }

// Of returns the address of one service.
func (a Services) Of(s geo.Service) string {
	switch s {
	case geo.Blob:
		return a.Blob
	case geo.Queue:
		return a.Queue
	default:
		return a.Table
	}
}

// Admin says by whom an admin port is used.
type Admin struct {
	// Hosts are names and addresses by which it is addressed, besides the host of
	// listen.admin, the address that a connection comes to, and those of this machine.
	Hosts []string `yaml:"hosts"`
	// TokenFile has the token for keys and changes. A node's, if missing, is made; default
	// the file admin-token in its data folder. A gateway has no default.
	TokenFile string `yaml:"token_file"`
}

// Peer is another node of the stamp.
type Peer struct {
	ID geo.NodeID `yaml:"node"`
	// Name for people. Default LOCATION-ID.
	Name string `yaml:"name"`
	// Address is its listen.node as this node reaches it, host:port.
	Address string `yaml:"address"`
	// Hop is its listen.hop as this node reaches it, host:port, for requests that it leads.
	// Default: the host of Address, and the port that this node itself listens on.
	Hop           string `yaml:"hop"`
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
}

// Pair is the location that this one is paired with. It is needed: accounts without a
// secondary (LRS) are not served yet.
type Pair struct {
	Location geo.Location `yaml:"location"`
	// Hops are the listen.hop of its nodes, host:port, for requests that belong there. The
	// location sees who sent them.
	Hops []string `yaml:"hops"`
	// Endpoints are its front end where Hops is empty: a location reached by them sees this
	// node in place of the client.
	Endpoints Endpoints `yaml:"endpoints"`
	// Nodes are the node addresses there, host:port, for payload and pulls.
	Nodes []string `yaml:"nodes"`
	// NATS is the carrier there, to which this location publishes: the nats.client of
	// its nodes, host:port, reached over TLS with this node's certificate; or, where
	// that location's is an outside one, its URLs, nats:// or tls://.
	NATS []string `yaml:"nats"`
	// Credentials is a NATS credentials file for an outside carrier. May be empty.
	Credentials string `yaml:"nats_credentials"`
}

// OutsideNATS reports whether NATS has URLs of an outside carrier: then Credentials
// are presented and no certificate of ours.
func (p Pair) OutsideNATS() bool {
	return len(p.NATS) > 0 && strings.Contains(p.NATS[0], "://")
}

// Endpoints are URLs without a path, http or https: one of something that stands before
// the location's nodes, or each node's own, which are tried in this order.
type Endpoints struct {
	Blob  []string `yaml:"blob"`
	Queue []string `yaml:"queue"`
	Table []string `yaml:"table"`
}

// TLS names the PEM files of the connections between nodes: see `antipode cert`.
type TLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// NATSMode says where the stream between locations lives.
type NATSMode string

// The modes.
const (
	// Embedded: a server in this process and no other.
	Embedded NATSMode = "embedded"
	// Cluster: a server in this process, joined with those of the stamp's other nodes.
	Cluster NATSMode = "cluster"
	// Outside: a NATS cluster that somebody else runs.
	Outside NATSMode = "outside"
)

// NATS is the carrier of the stream that comes into this location. In package
// natsbus Client is ServerOptions.Listen, Listen and Routes are those of
// ServerOptions.Cluster, URLs and Credentials those of ConnOptions. The server's name
// is Node.Name, the cluster's is Node.Location; Options.Replicas is 3 in mode cluster
// where the stamp has three nodes or more, and NATS.Replicas in mode outside.
type NATS struct {
	// Mode. Default Embedded for a stamp of one node, else Cluster.
	Mode NATSMode `yaml:"mode"`
	// Client is for the other location's publishers, over TLS, host:port. Not with
	// mode outside; default ":10222".
	Client string `yaml:"client"`
	// Listen is for the cluster's routes, host:port. Mode cluster alone; default ":10200".
	Listen string `yaml:"listen"`
	// Routes are the same addresses of the other nodes. Mode cluster alone.
	Routes []string `yaml:"routes"`
	// URLs of the outside cluster, nats:// or tls://. Mode outside alone.
	URLs []string `yaml:"urls"`
	// Credentials is a NATS credentials file. Mode outside alone; may be empty.
	Credentials string `yaml:"credentials"`
	// Replicas is how many servers of the outside cluster hold the stream: 1, 3 or 5. Mode
	// outside alone; default 3 where URLs has three or more, else 1.
	Replicas uint64 `yaml:"replicas"`
}

// Duration is a span of time in Go's form, such as 40s or 1m30s.
type Duration string

// Duration returns the span of a Duration that was validated.
func (d Duration) Duration() time.Duration {
	span, _ := time.ParseDuration(string(d))
	return span
}

// hostOf returns the host of one address with the port of another; "" where either is
// none, which validation reports at its place.
func hostOf(address, port string) string {
	host, _, err := net.SplitHostPort(address)
	_, number, portErr := net.SplitHostPort(port)
	if err != nil || portErr != nil {
		return ""
	}
	return net.JoinHostPort(host, number)
}

// defaultZones returns zones in their one spelling; what is none stays, and is reported by
// validation.
func defaultZones(zones []geo.Zone) []geo.Zone {
	if len(zones) == 0 {
		return []geo.Zone{geo.LocalZone}
	}
	out := slices.Clone(zones)
	for i, z := range zones {
		if zone, err := geo.ParseZone(string(z)); err == nil {
			out[i] = zone
		}
	}
	return out
}

// withDefaults fills what may be left out.
func (n Node) withDefaults() Node {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&n.Stamp, "antipode")
	set(&n.Name, fmt.Sprintf("%s-%d", n.Location, n.ID))
	if n.ReserveBytes == 0 {
		n.ReserveBytes = 512 << 20
	}
	if n.NameRest == "" {
		n.NameRest = "40s"
	}
	set(&n.Listen.Node, ":10100")
	set(&n.Listen.Blob, ":10000")
	set(&n.Listen.Queue, ":10001")
	set(&n.Listen.Table, ":10002")
	set(&n.Listen.Hop, ":10110")
	set(&n.Listen.Admin, "127.0.0.1:10080")
	if n.Data != "" {
		set(&n.Admin.TokenFile, filepath.Join(n.Data, "admin-token"))
	}
	n.Zones = defaultZones(n.Zones)
	for i := range n.Peers {
		p := &n.Peers[i]
		set(&p.Name, fmt.Sprintf("%s-%d", n.Location, p.ID))
		set(&p.Hop, hostOf(p.Address, n.Listen.Hop))
	}
	if n.NATS.Mode == "" {
		n.NATS.Mode = Embedded
		if len(n.Peers) > 0 {
			n.NATS.Mode = Cluster
		}
	}
	if n.NATS.Mode == Cluster {
		set(&n.NATS.Listen, ":10200")
	}
	if n.NATS.Mode == Outside && n.NATS.Replicas == 0 {
		n.NATS.Replicas = 1
		if len(n.NATS.URLs) >= replicas {
			n.NATS.Replicas = replicas
		}
	}
	if n.NATS.Mode == Cluster || n.NATS.Mode == Embedded {
		set(&n.NATS.Client, ":10222")
	}
	return n
}
