package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"antipode/geo"
	"antipode/internal/identity"
)

// DNS is the contents of dns.yaml.
type DNS struct {
	Listen DNSListen `yaml:"listen"`
	// Zone: the zone of accounts' names, ACCOUNT.SERVICE.ZONE: one of the nodes' and gateways' zones.
	Zone geo.Zone `yaml:"zone"`
	// TTL: how long resolvers keep an answer, and so how long after a move clients may come to the former
	// location. Default 5s.
	TTL Duration `yaml:"ttl"`
	// Contact: the mailbox of the zone, with a dot for the @. Default hostmaster.ZONE.
	Contact geo.Zone `yaml:"contact"`
	// Data: the folder of the names that were seen. Two name servers never share one.
	Data string `yaml:"data"`
	// Servers: the name servers of the zone, as the parent zone names them. Default ns.ZONE.
	Servers []DNSHost `yaml:"name_servers"`
	// Locations: both locations.
	Locations []DNSLocation `yaml:"locations"`
	// Push: servers that get the same records by dynamic updates (RFC 2136).
	Push []DNSPush `yaml:"push"`
}

// DNSListen has the addresses a name server listens on, host:port.
type DNSListen struct {
	// DNS: UDP and TCP. Default: ":53".
	DNS string `yaml:"dns"`
	// Metrics: plain HTTP. Default: "127.0.0.1:10053".
	Metrics string `yaml:"metrics"`
}

// DNSHost is a name server. Addresses of one in the zone are answered.
type DNSHost struct {
	// Name: the name of the server. Required.
	Name      geo.Zone `yaml:"name"`
	Addresses []string `yaml:"addresses"`
}

// DNSLocation is a location as its clients and the name server reach it.
type DNSLocation struct {
	// Name: the name of the location. Required.
	Name geo.Location `yaml:"location"`
	// Addresses: those of the location's front ends, or of what is in front of them: A and AAAA records.
	Addresses []string `yaml:"addresses"`
	// Admin: the admin ports of its nodes, host:port. They are asked in this sequence.
	Admin []string `yaml:"admin"`
}

// DNSPush is a server that takes updates, and the key that signs them (TSIG, HMAC-SHA-256).
type DNSPush struct {
	// Server: its address, host:port.
	Server string `yaml:"server"`
	// Key: the name of the key, and the file of its secret in base64.
	Key        string `yaml:"key"`
	SecretFile string `yaml:"secret_file"`
}

// LoadDNS reads the file of a name server: see Load.
func LoadDNS(path string) (DNS, Problems, error) { return load[DNS](path) }

// ParseDNS reads the text of a dns.yaml: see Parse.
func ParseDNS(data []byte) (DNS, Problems, error) { return parse[DNS](data) }

func (d DNS) withDefaults() DNS {
	for _, f := range []struct {
		field *string
		value string
	}{{&d.Listen.DNS, ":53"}, {&d.Listen.Metrics, "127.0.0.1:10053"}, {(*string)(&d.TTL), "5s"}} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	if zone, err := geo.ParseZone(string(d.Zone)); err == nil {
		d.Zone = zone
	}
	return d
}

func (d DNS) validate(w *walker) {
	w.address("listen.dns", d.Listen.DNS, false)
	w.address("listen.metrics", d.Listen.Metrics, false)
	if w.need("zone", string(d.Zone), "the zone of accounts' names, such as storage.example") {
		w.zone("zone", d.Zone)
	}
	if d.Contact != "" {
		w.zone("contact", d.Contact)
	}
	if ttl, err := time.ParseDuration(string(d.TTL)); err != nil || ttl < time.Second || ttl > time.Hour || ttl%time.Second != 0 {
		w.bad("ttl", "write whole seconds, 1s to 1h, such as 5s")
	}
	if w.need("data", d.Data, "the folder of the names that were seen, such as /var/lib/antipode-dns") && !filepath.IsAbs(d.Data) {
		w.bad("data", "write the whole path, from /: where the process starts must not matter")
	}
	for i, s := range d.Servers {
		at := fmt.Sprintf("name_servers[%d].", i)
		w.zone(at+"name", s.Name)
		w.ips(at+"addresses", s.Addresses)
	}
	d.validateLocations(w)
	d.validatePush(w)
}

func (d DNS) validateLocations(w *walker) {
	if len(d.Locations) == 0 {
		w.bad("locations", "is missing: write both locations")
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
		if len(l.Addresses) == 0 {
			w.bad(at+"addresses", "is missing: write the addresses of the location's front ends, such as [10.0.0.1]")
		}
		w.ips(at+"addresses", l.Addresses)
		if len(l.Admin) == 0 {
			w.bad(at+"admin", "is missing: write the admin ports of its nodes, such as [10.0.0.1:10080]")
		}
		for k, address := range l.Admin {
			w.address(fmt.Sprintf("%sadmin[%d]", at, k), address, true)
		}
	}
}

func (d DNS) validatePush(w *walker) {
	servers := map[string]bool{}
	for i, p := range d.Push {
		at := fmt.Sprintf("push[%d].", i)
		w.address(at+"server", p.Server, true)
		if servers[p.Server] && p.Server != "" {
			w.bad(at+"server", "is there twice: write each server once")
		}
		servers[p.Server] = true
		if w.need(at+"key", p.Key, "the name of the key that the server knows") && strings.ContainsAny(p.Key, " \t/\"") {
			w.bad(at+"key", "write the name of the key, such as antipode")
		}
		if w.need(at+"secret_file", p.SecretFile, "the path of a file with the key's secret, in base64") && !filepath.IsAbs(p.SecretFile) {
			w.bad(at+"secret_file", "write the whole path, from /")
		}
	}
}

// zone checks the name of a zone or host.
func (w *walker) zone(field string, z geo.Zone) {
	if _, err := geo.ParseZone(string(z)); err != nil {
		w.bad(field, "write a DNS name, such as storage.example")
	}
}

// ips checks addresses without ports.
func (w *walker) ips(field string, list []string) {
	for i, text := range list {
		if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
			w.bad(fmt.Sprintf("%s[%d]", field, i), "write an address, such as 10.0.0.1 or 2001:db8::1")
		}
	}
}
