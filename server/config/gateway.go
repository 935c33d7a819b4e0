package config

import (
	"fmt"

	"antipode/geo"
	"antipode/internal/identity"
)

// Gateway is the contents of gateway.yaml.
type Gateway struct {
	Listen GatewayListen `yaml:"listen"`
	// Admin: its token_file has the token that the gateway's admin port asks for, and that the gateway
	// presents to the nodes' admin ports. Empty: the port shows no keys and changes nothing.
	Admin Admin `yaml:"admin"`
	// Zones: as in node.yaml. Default: localhost.
	Zones []geo.Zone `yaml:"zones"`
	// Hosts: as in node.yaml. Default: none.
	Hosts []string `yaml:"hosts"`
	Drain Drain    `yaml:"drain"`
	// TLS: the gateway's certificate: see `antipode cert gateway`. With a certificate,
	// requests go to the nodes' listen.hop, which take the client's address from the gateway;
	// without, to the plain front ends.
	TLS TLS `yaml:"tls"`
	// Locations: those that the gateway serves. They are asked in this order for an account that is
	// not known yet.
	Locations []GatewayLocation `yaml:"locations"`
}

// GatewayListen has the addresses a gateway listens on, host:port.
type GatewayListen struct {
	// Blob: the gateway's listeners. Default: :10000, :10001, :10002.
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Admin: its admin port, for all locations; it queries those of the nodes. Default: 127.0.0.1:10080.
	Admin string `yaml:"admin"`
}

// GatewayLocation is one location and its nodes.
type GatewayLocation struct {
	// Name: name of the location. Required.
	Name  geo.Location  `yaml:"location"`
	Nodes []GatewayNode `yaml:"nodes"`
}

// GatewayNode is a node as the gateway reaches it, host:port.
type GatewayNode struct {
	// ID: number within the stamp. Required.
	ID geo.NodeID `yaml:"node"`
	// Hop: the node's listen.hop, host:port. Required with tls.
	Hop string `yaml:"hop"`
	// Blob: the node's front end, host:port. Required without tls.
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Admin: the node's admin port, host:port. Default: none: the node is neither shown nor controlled from here, and
	// not asked for epochs (docs/admin.md).
	Admin string `yaml:"admin"`
}

// Services are the addresses of the gateway's front end.
func (l GatewayListen) Services() Services { return Services{l.Blob, l.Queue, l.Table} }

// Services are the addresses of the node's front end.
func (n GatewayNode) Services() Services { return Services{n.Blob, n.Queue, n.Table} }

// LoadGateway reads the file of a gateway: see Load.
func LoadGateway(path string) (Gateway, Problems, error) { return load[Gateway](path) }

// ParseGateway reads the text of a gateway.yaml: see Parse.
func ParseGateway(data []byte) (Gateway, Problems, error) { return parse[Gateway](data) }

func (g Gateway) withDefaults() Gateway {
	for _, f := range []struct {
		field *string
		value string
	}{{&g.Listen.Blob, ":10000"}, {&g.Listen.Queue, ":10001"}, {&g.Listen.Table, ":10002"}, {&g.Listen.Admin, "127.0.0.1:10080"}} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	g.Zones, g.Drain = defaultZones(g.Zones), g.Drain.withDefaults()
	return g
}

func (g Gateway) validate(w *walker) {
	w.address("listen.blob", g.Listen.Blob, false)
	w.address("listen.queue", g.Listen.Queue, false)
	w.address("listen.table", g.Listen.Table, false)
	w.address("listen.admin", g.Listen.Admin, false)
	w.zones(g.Zones)
	w.hosts("hosts", g.Hosts)
	w.drain(g.Drain)
	w.admin(g.Admin)
	if g.Admin.TokenFile == "" {
		w.warn("admin.token_file", "is missing, so the gateway's admin port shows no keys and changes nothing: "+
			"write the path of a file with the token of the nodes")
	}
	g.validateTLS(w)
	if len(g.Locations) == 0 {
		w.bad("locations", "is missing: write the locations that the gateway serves")
	}
	names := map[geo.Location]bool{}
	for i, l := range g.Locations {
		at := fmt.Sprintf("locations[%d].", i)
		switch {
		case !identity.ValidLabel(string(l.Name)):
			w.bad(at+"location", "write "+identity.LabelWords+", such as northcentralus")
		case names[l.Name]:
			w.bad(at+"location", "is there twice: write each location once")
		}
		names[l.Name] = true
		if len(l.Nodes) == 0 {
			w.bad(at+"nodes", "is missing: write the nodes of the location")
		}
		ids := map[geo.NodeID]bool{}
		for k, n := range l.Nodes {
			at := fmt.Sprintf("%snodes[%d].", at, k)
			if n.ID == 0 || ids[n.ID] {
				w.bad(at+"node", "write the node's number within its stamp, from 1, each once")
			}
			ids[n.ID] = true
			if g.TLS != (TLS{}) {
				w.address(at+"hop", n.Hop, true)
			} else {
				w.address(at+"blob", n.Blob, true)
				w.address(at+"queue", n.Queue, true)
				w.address(at+"table", n.Table, true)
			}
			if n.Admin != "" {
				w.address(at+"admin", n.Admin, true)
			}
		}
	}
}

func (g Gateway) validateTLS(w *walker) {
	if g.TLS == (TLS{}) {
		w.warn("tls", "is missing, so the locations see the gateway in place of the client: write the files that `antipode cert gateway` made")
		return
	}
	w.tls(g.TLS)
}
