package config

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
	// Mode: where the incoming stream is stored: embedded in this process, cluster in the stamp's nodes, outside in
	// NATS servers elsewhere. Default: cluster, embedded for one node.
	Mode NATSMode `yaml:"mode"`
	// Client: address for the publishers of the other location, over TLS; not for outside. Default: :10222.
	Client string `yaml:"client"`
	// Listen: for cluster: address for the servers of the stamp's other nodes, over TLS, and their addresses. Default:
	// :10200, needed.
	Listen string   `yaml:"listen"`
	Routes []string `yaml:"routes"`
	// URLs: for outside: nats:// or tls:// servers, a credentials file. Required, none.
	URLs        []string `yaml:"urls"`
	Credentials string   `yaml:"credentials"`
	// Replicas: for outside: how many of its servers hold the stream: 1, 3 or 5. Default: 3 with three urls or more,
	// else 1.
	Replicas uint64 `yaml:"replicas"`
}
