package config

import (
	"fmt"

	"antipode/geo"
	"antipode/internal/identity"
)

// Door is the contents of frontdoor.yaml.
type Door struct {
	Listen DoorListen `yaml:"listen"`
	// Admin.TokenFile has the token of the nodes' admin ports, which the door both asks for
	// and presents to them. Empty: it shows no keys and changes nothing.
	Admin Admin `yaml:"admin"`
	// Zones are those of the nodes: see Node.
	Zones []geo.Zone `yaml:"zones"`
	// TLS has the door's certificate: see `antipode cert door`. With it requests go to the
	// nodes' listen.hop, which believe it who the client is; without, to the plain front ends.
	TLS TLS `yaml:"tls"`
	// Locations are what the door stands before, in the order in which they are asked for
	// an account that is not known yet.
	Locations []DoorLocation `yaml:"locations"`
}

// DoorListen has the addresses a front door listens on, host:port.
type DoorListen struct {
	// Blob, Queue and Table are the front door. Defaults ":10000", ":10001", ":10002".
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Admin is the admin port. Default "127.0.0.1:10080".
	Admin string `yaml:"admin"`
}

// DoorLocation is one location and its nodes.
type DoorLocation struct {
	Name  geo.Location `yaml:"location"`
	Nodes []DoorNode   `yaml:"nodes"`
}

// DoorNode is a node as the door reaches it, host:port.
type DoorNode struct {
	ID geo.NodeID `yaml:"node"`
	// Hop is its listen.hop, which a door with a certificate uses.
	Hop string `yaml:"hop"`
	// Blob, Queue and Table are its front end, which a door without one uses.
	Blob  string `yaml:"blob"`
	Queue string `yaml:"queue"`
	Table string `yaml:"table"`
	// Admin is its admin port. Where it is empty the door cannot show or control the node.
	Admin string `yaml:"admin"`
}

// Services are the addresses of the door's front end.
func (l DoorListen) Services() Services { return Services{l.Blob, l.Queue, l.Table} }

// Services are the addresses of the node's front end.
func (n DoorNode) Services() Services { return Services{n.Blob, n.Queue, n.Table} }

// LoadDoor reads the file of a front door: see Load.
func LoadDoor(path string) (Door, Problems, error) { return load[Door](path) }

// ParseDoor reads the text of a frontdoor.yaml: see Parse.
func ParseDoor(data []byte) (Door, Problems, error) { return parse[Door](data) }

func (d Door) withDefaults() Door {
	for _, f := range []struct {
		field *string
		value string
	}{{&d.Listen.Blob, ":10000"}, {&d.Listen.Queue, ":10001"}, {&d.Listen.Table, ":10002"}, {&d.Listen.Admin, "127.0.0.1:10080"}} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	d.Zones = defaultZones(d.Zones)
	return d
}

func (d Door) validate(w *walker) {
	w.address("listen.blob", d.Listen.Blob, false)
	w.address("listen.queue", d.Listen.Queue, false)
	w.address("listen.table", d.Listen.Table, false)
	w.address("listen.admin", d.Listen.Admin, false)
	w.zones(d.Zones)
	w.admin(d.Admin)
	if d.Admin.TokenFile == "" {
		w.warn("admin.token_file", "is missing, so the door's admin port shows no keys and changes nothing: "+
			"write the path of a file with the token of the nodes")
	}
	d.validateTLS(w)
	if len(d.Locations) == 0 {
		w.bad("locations", "is missing: write the locations that the door stands before")
	}
	names := map[geo.Location]bool{}
	for i, l := range d.Locations {
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
			if d.TLS != (TLS{}) {
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

func (d Door) validateTLS(w *walker) {
	if d.TLS == (TLS{}) {
		w.warn("tls", "is missing, so the locations see the door in place of the client: write the files that `antipode cert door` made")
		return
	}
	w.tls(d.TLS)
}
