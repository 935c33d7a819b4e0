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
	// Stamp: name of the stamp, as given to cert ca --name. Default: antipode.
	Stamp string `yaml:"stamp"`
	// ID: number of this node within its stamp, from 1. Required.
	ID geo.NodeID `yaml:"node"`
	// Name: for people: logs and metrics. Default: LOCATION-NUMBER.
	Name string `yaml:"name"`
	// Location: lower-case letters, digits, hyphens. Required.
	Location geo.Location `yaml:"location"`
	// FaultDomain: what fails, and what is upgraded, together with this node. Default: none; a stamp of three or more
	// warns.
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
	// Data: data folder, an absolute path. Required. It is closed to other users at each start, if the process's user
	// owns it; all that is made in it has mode 0700 or 0600.
	Data string `yaml:"data"`
	// ReserveBytes: bytes of the disk of data that stay free: with less the node takes no writes and reports it, and
	// takes them again with 512 MiB more; the stream into the location stops a quarter before. A quarter of it must
	// hold what is flushed and compacted when nothing more is taken, some 100 MiB. From 1 to 1125899906842624 (1 PiB).
	// Default, also for 0: 536870912 (512 MiB).
	ReserveBytes uint64 `yaml:"reserve_bytes"`
	// CacheBytes: memory for what was read of the state, and for changes of it that are not in a table yet (up to 80
	// MiB of it): a node grows by as much while it works. From 100663296 (96 MiB) to 1099511627776 (1 TiB). Default,
	// also for 0: 268435456 (256 MiB).
	CacheBytes uint64 `yaml:"cache_bytes"`
	// NameRest: how long the name of a deleted table or container cannot be created again (409 TableBeingDeleted,
	// ContainerBeingDeleted); the real service promises no less than 40 s. Default: 40s.
	NameRest Duration `yaml:"name_rest"`
	// Rehydration: how long an archived blob takes to get another tier, of either priority. Tiers are labels here, and
	// nothing moves meanwhile: it is there so that clients meet the wait that the real service has (15 h at most; 1 h
	// of priority High). The node that leads the blob's range decides: write the same into all. A change is of the
	// rehydrations that begin after it. Up to 360h; with 0s, as in antipode dev, there is none. Default: 1h.
	Rehydration Duration `yaml:"rehydration"`
	// RPOTarget: the age from which a change that the other location has not acknowledged is reported as late (events
	// late and arrived, docs/admin.md). Default: 15m.
	RPOTarget Duration `yaml:"rpo_target"`
	// OutboxBytes: bytes that the node keeps of changes that the other location has not acknowledged, with the payload
	// that they name. Past it the account with the most falls out: its secondary has to be rebuilt (event fell-out).
	// Up to 1125899906842624 (1 PiB). Default, also for 0: a quarter of the disk of data.
	OutboxBytes uint64 `yaml:"outbox_bytes"`
	// OutboxAccountBytes: the same of each account. Default, also for 0: no bound.
	OutboxAccountBytes uint64 `yaml:"outbox_account_bytes"`
	// OutboxAge: the age from which a change falls out, if it has not moved for a tenth of that, an hour at most,
	// while the node led its range. Default: 72h.
	OutboxAge Duration `yaml:"outbox_age"`
	Drain     Drain    `yaml:"drain"`
	// BootstrapBytesPerSecond: how much the copy of an account (docs/admin.md) takes per second at most that is begun
	// without a rate. That of the node that leads the catalog counts: write it into all. Up to 1125899906842624, which
	// bounds nothing. Default, also for 0: 4194304 (4 MiB), with which the writers of a small stamp hardly notice the
	// copy (docs/performance.md). 1 TB takes three days at it: a stamp with fast disks wants more.
	BootstrapBytesPerSecond uint64 `yaml:"bootstrap_bytes_per_second"`
	// MetricsAccounts: how many accounts the metrics (docs/metrics.md) show by their names, those that are worst off; all
	// others are in one series. Up to 10000; -1 shows none by name. Default, also for 0: 100.
	MetricsAccounts int64      `yaml:"metrics_accounts"`
	QueueScale      QueueScale `yaml:"queue_scale"`
	Listen          Listen     `yaml:"listen"`
	Admin           Admin      `yaml:"admin"`
	// Zones: DNS zones under which accounts have host names, ACCOUNT.SERVICE.ZONE; under any other name the account
	// stands in the path. The same at all nodes of both locations and at gateways. Default: localhost.
	Zones []geo.Zone `yaml:"zones"`
	// Hosts: further names under which the front end answers, without ports, such as that of a service in a cluster,
	// or of a proxy in front of it. Requests to other names get 400 InvalidHeaderValue, but for zones, account names
	// under them, localhost, the hosts of listen and any address: a page of another site has another name (DNS
	// rebinding). Requests at listen.hop were checked by the front end that sends them; those of a gateway without a
	// certificate are checked again, so its names belong here, too. Default: none.
	Hosts []string `yaml:"hosts"`
	// CopySources: the servers outside of the deployment from which clients may copy blobs (Copy Blob and the
	// operations From URL): a list of host and, optionally, allow_private. host is a name, *. and a name for all names
	// under that, or an address, perhaps with a port; without one it is 80 for http and 443 for https. A name is
	// connected to where its addresses are public ones, whatever DNS answers; with allow_private: true also where they
	// are private (RFC 1918, RFC 6598, RFC 4193), as those of a MinIO or Azurite in the same network. Loopback,
	// link-local addresses and those of this machine are reached only where the address itself is listed. Redirects
	// are not followed, proxies of the environment not used. A client that names another server gets 403
	// CannotVerifyCopySource. Accounts of the deployment need no entry: they are read inside of it. Which node answers
	// a client is not the client's choice: write the same into all. Default: none.
	CopySources []CopySource `yaml:"copy_sources"`
	// Peers: the other nodes of the stamp: node, address, and optionally name, fault_domain, upgrade_domain. Default:
	// none: a stamp of one node.
	Peers   []Peer         `yaml:"peers"`
	Pair    Pair           `yaml:"pair"`
	Witness WitnessAddress `yaml:"witness"`
	Notices Notices        `yaml:"notices"`
	TLS     TLS            `yaml:"tls"`
	NATS    NATS           `yaml:"nats"`
}

// Listen has the addresses that this node listens on, host:port. An empty host means every
// address of the machine.
type Listen struct {
	// Node: address for the stamp's other nodes, over TLS. Default: :10100.
	Node string `yaml:"node"`
	// Blob: front end. Default: :10000, :10001, :10002.
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Hop: front end for requests that other nodes, the other location and gateways forward, over TLS; only these may
	// state the client's address. Default: :10110.
	Hop string `yaml:"hop"`
	// Admin: admin port. Default: 127.0.0.1:10080.
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
	// Hosts: further names and addresses under which the admin port answers; others are refused. Default: none.
	Hosts []string `yaml:"hosts"`
	// TokenFile: file with the token for keys and changes, an absolute path; created if it is missing; the same at all
	// nodes that a gateway controls. Default: admin-token in data.
	TokenFile string `yaml:"token_file"`
}

// Peer is another node of the stamp.
type Peer struct {
	// ID: its number within the stamp. Required.
	ID geo.NodeID `yaml:"node"`
	// Name: for people. Default: LOCATION-NUMBER.
	Name string `yaml:"name"`
	// Address: its listen.node as this node reaches it, host:port.
	Address string `yaml:"address"`
	// Hop: that node's listen.hop, host:port, for requests that it leads. Default: host of address, port of listen.hop
	// here.
	Hop string `yaml:"hop"`
	// FaultDomain: as those of the node. Default: none.
	FaultDomain   string `yaml:"fault_domain"`
	UpgradeDomain string `yaml:"upgrade_domain"`
}

// Pair is the location that this one is paired with. It is required: accounts without a secondary
// (LRS) are not served yet.
type Pair struct {
	// Location: the other location. Required: a stamp without a pair, and so an account with one location (LRS), is
	// not supported yet.
	Location geo.Location `yaml:"location"`
	// Hops: the listen.hop of its nodes, tried in this order. Required, or pair.endpoints.
	Hops      []string  `yaml:"hops"`
	Endpoints Endpoints `yaml:"endpoints"`
	// Nodes: its node addresses, for payload and pulls. Required.
	Nodes []string `yaml:"nodes"`
	// NATS: where the stream to it is published: the nats.client of its nodes, or nats:// or tls:// servers of the
	// cluster it uses. Required.
	NATS []string `yaml:"nats"`
	// Credentials: a credentials file for such a cluster. Default: none.
	Credentials string `yaml:"nats_credentials"`
	// Away: what a node that has started does with writes of accounts that have a copy while the other location does
	// not answer: refuse them, or accept them: see A location that starts alone (docs/admin.md). Default: refuse.
	Away Away `yaml:"away"`
}

// Drain is how a node or a gateway stops on SIGTERM: it has others lead what it leads, and lets the requests under way end.
type Drain struct {
	// Timeout: how long the node takes, on SIGTERM, to have other nodes lead what it leads and to let the requests
	// under way end (docs/admin.md). Past it the node stops, and says what was left. A supervisor should wait a minute
	// longer than this. Up to 1h. Default: 15s.
	Timeout Duration `yaml:"timeout"`
	// Notice: how long it goes on to take requests meanwhile, with a readiness that is false: as long as a load
	// balancer takes to look. Below drain.timeout. Default: 1s.
	Notice Duration `yaml:"notice"`
}

func (d Drain) withDefaults() Drain {
	return Drain{Timeout: cmp.Or(d.Timeout, "15s"), Notice: cmp.Or(d.Notice, "1s")}
}

// QueueScale is when a queue gets another subqueue: see queues.ScaleOptions.
type QueueScale struct {
	// Max: how many subqueues a queue gets at most (docs/admin.md). Up to 256; with 1 each queue keeps the one that it
	// begins with, and its messages their order. Default, also for 0: 64.
	Max uint64 `yaml:"max"`
	// UpRate: from how many commands per second on one subqueue, over 10 s, a queue gets another one. Below a quarter
	// of it on each of them, one drains. Up to 1000000. Default, also for 0: 1000.
	UpRate uint64 `yaml:"up_rate"`
	// WithinRange: true for several subqueues of a queue in one range, which make it no faster; without it those drain
	// to one. Default: false.
	WithinRange bool `yaml:"within_range"`
}

// Notices configures the receiver of events of failovers.
type Notices struct {
	// URL: where each event of a failover is posted to (docs/admin.md). The node that made the step posts it: write it
	// into all. Default: none.
	URL string `yaml:"url"`
	// KeyFile: a file with the key that signs the bodies, an absolute path; blanks at its ends do not count. Default:
	// none, and they are not signed.
	KeyFile string `yaml:"key_file"`
	// Timeout: how long an attempt may take. Default: 10s.
	Timeout Duration `yaml:"timeout"`
}

// WitnessAddress is where the witness of both locations is: see Witness.
type WitnessAddress struct {
	// Location: the third place with the witness, and its listen as this node reaches it: see witness.yaml. Default:
	// none.
	Location geo.Location `yaml:"location"`
	Address  string       `yaml:"address"`
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
	// Blob: instead of pair.hops: URLs of its front end, if another proxy stands in front of the nodes. It sees this
	// node instead of the client. Default: none.
	Blob  []string `yaml:"blob"`
	Queue []string `yaml:"queue"`
	Table []string `yaml:"table"`
}

// TLS names the PEM files of the connections between nodes: see `antipode cert`.
type TLS struct {
	// CA: the PEM files of `antipode cert`: the authorities, the certificate and its key, absolute paths. Required.
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
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
