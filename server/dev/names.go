package dev

import (
	"context"
	"net/netip"
	"path/filepath"

	wire "antipode/client/admin"
	"antipode/failover/dns"
	"antipode/geo"
	"antipode/server/epochs"
	"antipode/server/nameserver"
	"antipode/server/operator"
)

// openNames runs the name server. Names of both locations lead to the address that the ports are on: a name has no
// port, and clients use those of the gateway.
func (c *Cluster) openNames() (err error) {
	if c.o.DNSZone == "" {
		return nil
	}
	host, err := netip.ParseAddr(c.o.Host)
	if err != nil || host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	o := nameserver.Options{
		Addr: c.gateway.DNS(), Dir: filepath.Join(c.o.Dir, "dns"), Ports: portsOf, Clock: c.clock, Registerer: c.registry, Logger: c.o.Logger,
		Sources: c.sources(),
		Zone:    dns.ZoneOptions{Origin: c.o.DNSZone, Servers: []dns.Host{{Name: "ns." + c.o.DNSZone, Addresses: []netip.Addr{host}}}},
	}
	for _, l := range order() {
		o.Zone.Locations = append(o.Zone.Locations, dns.Place{Location: l, Addresses: []netip.Addr{host}})
	}
	c.names, err = nameserver.Start(o)
	return err
}

// sources are the locations as the name server and the gateway ask them.
func (c *Cluster) sources() (out []dns.Source) {
	for _, l := range order() {
		out = append(out, epochs.NewSource(l, func(ctx context.Context, l geo.Location, q wire.NamesQuery) (wire.Names, error) {
			return operator.Do(ctx, c.admin, wire.CallNames, wire.At{Location: l}, q)
		}))
	}
	return out
}

// NameServer returns the address of the name server, over UDP and TCP.
func (c *Cluster) NameServer() string { return c.names.Addr() }
