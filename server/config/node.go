package config

import (
	"cmp"
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
	// FaultDomain names what fails together, such as a rack; UpgradeDomain what is upgraded
	// together.
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
	// Data is the data folder.
	Data string `yaml:"data"`
	// ReserveBytes of the disk of Data stay free. With less the node takes no writes, until
	// 512 MiB more are free. Default 512 MiB.
	ReserveBytes uint64 `yaml:"reserve_bytes"`
	// CacheBytes bounds what the node keeps in memory of its state, and of changes of it that are not in a table yet.
	// Default 256 MiB.
	CacheBytes uint64 `yaml:"cache_bytes"`
	// NameRest is how long the name of a deleted table or container cannot be created
	// again. Default 40s, as in the public service.
	NameRest Duration `yaml:"name_rest"`
	// Rehydration is how long an archived blob takes to get another tier. Default 1h; 0s means no time.
	Rehydration Duration `yaml:"rehydration"`
	// RPOTarget is the age from which a change that is not at the other location is reported as late.
	// Default 15m.
	RPOTarget Duration `yaml:"rpo_target"`
	// OutboxBytes bounds what this node keeps of changes, payload included, that the other location has not
	// acknowledged, OutboxAccountBytes that of each account, and OutboxAge how old they may be. Past it the
	// secondary of an account falls out, and has to be rebuilt. Defaults: a quarter of the disk of Data, no
	// bound, 72h.
	OutboxBytes        uint64   `yaml:"outbox_bytes"`
	OutboxAccountBytes uint64   `yaml:"outbox_account_bytes"`
	OutboxAge          Duration `yaml:"outbox_age"`
	// Drain bounds how the node stops on SIGTERM.
	Drain Drain `yaml:"drain"`
	// BootstrapBytesPerSecond is how much the copy of an account takes per second at most that is begun without a
	// rate. Default 4 MiB: with it the p99 of writers was at most 1.25 times that without (docs/performance.md).
	BootstrapBytesPerSecond uint64 `yaml:"bootstrap_bytes_per_second"`
	// MetricsAccounts is how many accounts the metrics show by their names, those that are worst off; all others are
	// in one series. Default 100; -1 shows none by name.
	MetricsAccounts int64      `yaml:"metrics_accounts"`
	QueueScale      QueueScale `yaml:"queue_scale"`
	Listen          Listen     `yaml:"listen"`
	Admin           Admin      `yaml:"admin"`
	// Zones are the DNS zones under which accounts have host names, ACCOUNT.SERVICE.ZONE.
	// All nodes of both locations and all gateways need the same zones. Default localhost.
	Zones []geo.Zone `yaml:"zones"`
	// Hosts are further names by which clients may address the front end, without ports. Requests to other names are
	// refused, but for those of zones, localhost and addresses. Those of a gateway without a certificate belong here, too.
	Hosts []string `yaml:"hosts"`
	// CopySources are the servers outside of the deployment from which clients may copy blobs. Default none.
	CopySources []CopySource `yaml:"copy_sources"`
	// Peers are the other nodes of the stamp.
	Peers []Peer `yaml:"peers"`
	Pair  Pair   `yaml:"pair"`
	// Witness is at a third place. Default none.
	Witness WitnessAddress `yaml:"witness"`
	Notices Notices        `yaml:"notices"`
	TLS     TLS            `yaml:"tls"`
	NATS    NATS           `yaml:"nats"`
}

// Listen has the addresses that this node listens on, host:port. An empty host means every
// address of the machine.
type Listen struct {
	// Node is for peers, over TLS. Default ":10100".
	Node string `yaml:"node"`
	// Blob, Queue and Table are the front end. Defaults ":10000", ":10001", ":10002".
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Hop is the front end for requests that other nodes and gateways forward to this node,
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

// Admin configures who may use an admin port.
type Admin struct {
	// Hosts are names and addresses by which the port may be addressed, besides the host of
	// listen.admin, the address that a connection comes to, and those of this machine.
	Hosts []string `yaml:"hosts"`
	// TokenFile has the token for keys and changes. A node makes the file if it is missing;
	// its default is admin-token in the data folder. A gateway has no default.
	TokenFile string `yaml:"token_file"`
}

// Peer is another node of the stamp.
type Peer struct {
	ID geo.NodeID `yaml:"node"`
	// Name for people. Default LOCATION-ID.
	Name string `yaml:"name"`
	// Address is its listen.node as this node reaches it, host:port.
	Address string `yaml:"address"`
	// Hop is its listen.hop as this node reaches it, host:port, for requests to ranges that the
	// peer leads. Default: the host of Address with the port of this node's listen.hop.
	Hop           string `yaml:"hop"`
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
}

// Pair is the location that this one is paired with. It is required: accounts without a secondary
// (LRS) are not served yet.
type Pair struct {
	Location geo.Location `yaml:"location"`
	// Hops are the listen.hop of its nodes, host:port, for requests that it serves. It sees the
	// addresses of their clients.
	Hops []string `yaml:"hops"`
	// Endpoints are its front end, used if Hops is empty. The location then sees the address of
	// this node in place of the client's.
	Endpoints Endpoints `yaml:"endpoints"`
	// Nodes are the listen.node of its nodes, host:port, for payload and pulls.
	Nodes []string `yaml:"nodes"`
	// NATS is the bus there, to which this location publishes: the nats.client of its nodes,
	// host:port, reached over TLS with this node's certificate, or the URLs of an outside
	// NATS cluster, nats:// or tls://.
	NATS []string `yaml:"nats"`
	// Credentials is a NATS credentials file for an outside cluster. May be empty.
	Credentials string `yaml:"nats_credentials"`
	// Away is what a node that has started does with writes of accounts that have a copy while Location does not
	// answer. Default Refuse.
	Away Away `yaml:"away"`
}

// Drain is how a node or a gateway stops on SIGTERM: it has others lead what it leads, and lets the requests under way end.
type Drain struct {
	// Timeout bounds all of it: past it the process stops, and says what was left. Default 15s. A short one breaks
	// requests off.
	Timeout Duration `yaml:"timeout"`
	// Notice is how long it goes on to take requests while its readiness is false, for load balancers that look at it
	// that often. Default 1s.
	Notice Duration `yaml:"notice"`
}

func (d Drain) withDefaults() Drain {
	return Drain{Timeout: cmp.Or(d.Timeout, "15s"), Notice: cmp.Or(d.Notice, "1s")}
}

// QueueScale is when a queue gets another subqueue: see queues.ScaleOptions.
type QueueScale struct {
	// Max is how many subqueues a queue gets at most. Default 64. With 1 each keeps the one that it begins with.
	Max uint64 `yaml:"max"`
	// UpRate is from how many commands per second on one subqueue a queue gets another one. Below a quarter of it on each, one
	// of them drains. Default 1000.
	UpRate uint64 `yaml:"up_rate"`
	// WithinRange: a queue may have several subqueues in one range. Default false, since they make it no faster.
	WithinRange bool `yaml:"within_range"`
}

// Notices configures the receiver of events of failovers.
type Notices struct {
	// URL is where each event of a failover is posted to. Default none.
	URL string `yaml:"url"`
	// KeyFile has the key that signs the bodies. Blanks at its ends do not count. Default none: they are not signed.
	KeyFile string `yaml:"key_file"`
	// Timeout bounds an attempt. Default 10s.
	Timeout Duration `yaml:"timeout"`
}

// WitnessAddress is where the witness of both locations is: see Witness.
type WitnessAddress struct {
	// Location is its place, as its certificate has it.
	Location geo.Location `yaml:"location"`
	// Address is its listen as this node reaches it, host:port.
	Address string `yaml:"address"`
}

// Away is a policy for the time in which the paired location does not answer (R21).
type Away string

// The policies.
const (
	// Refuse: writes of accounts that have a copy wait for its answer, or for an operator.
	Refuse Away = "refuse"
	// Accept: they are taken. If an account was promoted there meanwhile, one side's writes are lost.
	Accept Away = "accept"
)

// OutsideNATS reports whether NATS has URLs of an outside cluster. Such a cluster is shown
// Credentials, and not this node's certificate.
func (p Pair) OutsideNATS() bool {
	return len(p.NATS) > 0 && strings.Contains(p.NATS[0], "://")
}

// Endpoints are URLs without a path, http or https: of a load balancer, or of the nodes, which
// are tried in this order.
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

// NATSMode is where the incoming stream is stored.
type NATSMode string

// The modes.
const (
	// Embedded: a server in this process and no other.
	Embedded NATSMode = "embedded"
	// Cluster: a server in this process, joined with those of the stamp's other nodes.
	Cluster NATSMode = "cluster"
	// Outside: a NATS cluster that is operated separately.
	Outside NATSMode = "outside"
)

// NATS is the bus that stores the incoming stream. In package natsbus, Client is
// ServerOptions.Listen, Listen and Routes are fields of ServerOptions.Cluster, URLs and
// Credentials are fields of ConnOptions. The server's name is Node.Name, the cluster's is
// Node.Location. Options.Replicas is 3 in mode cluster with at least three nodes, and
// NATS.Replicas in mode outside.
type NATS struct {
	// Mode. Default Embedded for a stamp of one node, else Cluster.
	Mode NATSMode `yaml:"mode"`
	// Client is for the other location's publishers, over TLS, host:port. Not with mode outside.
	// Default ":10222".
	Client string `yaml:"client"`
	// Listen is for the cluster's routes, host:port. Mode cluster only. Default ":10200".
	Listen string `yaml:"listen"`
	// Routes are the nats.listen of the other nodes. Mode cluster only.
	Routes []string `yaml:"routes"`
	// URLs of the outside cluster, nats:// or tls://. Mode outside only.
	URLs []string `yaml:"urls"`
	// Credentials is a NATS credentials file. Mode outside only. May be empty.
	Credentials string `yaml:"credentials"`
	// Replicas is how many servers of the outside cluster store the stream: 1, 3 or 5. Mode
	// outside only. Default 3 with at least three URLs, else 1.
	Replicas uint64 `yaml:"replicas"`
}

// Duration is a span of time in Go's form, such as 40s or 1m30s.
type Duration string

// Duration returns the span. The Duration was validated.
func (d Duration) Duration() time.Duration {
	span, _ := time.ParseDuration(string(d))
	return span
}

// hostOf returns the host of one address with the port of another, or "" if either is not an
// address, which validation reports elsewhere.
func hostOf(address, port string) string {
	host, _, err := net.SplitHostPort(address)
	_, number, portErr := net.SplitHostPort(port)
	if err != nil || portErr != nil {
		return ""
	}
	return net.JoinHostPort(host, number)
}

// defaultZones returns zones in canonical spelling. Invalid zones stay as they are and are
// reported by validation.
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
	if n.CacheBytes == 0 {
		n.CacheBytes = 256 << 20
	}
	if n.BootstrapBytesPerSecond == 0 {
		n.BootstrapBytesPerSecond = 4 << 20
	}
	if n.MetricsAccounts == 0 {
		n.MetricsAccounts = 100
	}
	n.QueueScale.Max, n.QueueScale.UpRate = cmp.Or(n.QueueScale.Max, 64), cmp.Or(n.QueueScale.UpRate, 1000)
	n.NameRest, n.Rehydration = cmp.Or(n.NameRest, "40s"), cmp.Or(n.Rehydration, "1h")
	n.RPOTarget, n.OutboxAge = cmp.Or(n.RPOTarget, "15m"), cmp.Or(n.OutboxAge, "72h")
	n.Drain = n.Drain.withDefaults()
	set(&n.Listen.Node, ":10100")
	set(&n.Listen.Blob, ":10000")
	set(&n.Listen.Queue, ":10001")
	set(&n.Listen.Table, ":10002")
	set(&n.Listen.Hop, ":10110")
	set(&n.Listen.Admin, "127.0.0.1:10080")
	if n.Data != "" {
		set(&n.Admin.TokenFile, filepath.Join(n.Data, "admin-token"))
	}
	if n.Notices.Timeout == "" {
		n.Notices.Timeout = "10s"
	}
	if n.Pair.Away == "" {
		n.Pair.Away = Refuse
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
