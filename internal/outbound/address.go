package outbound

import (
	"net"
	"net/netip"
)

// permission is which addresses a listed server may have: public ones, and besides
type permission struct {
	// literal: the one address that was listed as such, whatever it is.
	literal bool
	// private: those of private networks, but none of this machine.
	private bool
}

// special are the IPv4 addresses that are no server's on the Internet (RFC 6890 and its registry).
//
//nolint:gochecknoglobals // A table, never written.
var special = prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // The host of a virtual machine in Azure, which configures it.
)

// metadata are addresses in private networks at which clouds give their machines credentials.
//
//nolint:gochecknoglobals // As above.
var metadata = prefixes("100.100.100.200/32", "fd00:ec2::254/128")

// privateNets are those that an operator may permit by name. IPv6 has no other ones that are not public.
//
//nolint:gochecknoglobals // As above.
var privateNets = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")

// In IPv6 only addresses assigned to networks of the Internet are public. Excepted are addresses for documentation,
// and those that carry an IPv4 address in another way than the two that embedded knows.
//
//nolint:gochecknoglobals // As above.
var (
	global    = netip.MustParsePrefix("2000::/3")
	notGlobal = prefixes("2001::/23", "2001:db8::/32", "3fff::/20")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address to which a translator sends what goes to an IPv6 address; a itself for any other.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// permits reports whether a connection may be made to an address. own are those of this machine.
func (p permission) permits(a netip.Addr, own []netip.Addr) bool {
	if p.literal {
		return true
	}
	if a.Zone() != "" {
		return false
	}
	a = embedded(a.Unmap())
	for _, o := range own {
		if a == o {
			return false
		}
	}
	switch {
	case within(a, metadata):
		return false
	case within(a, privateNets):
		return p.private
	case a.Is4():
		return !within(a, special)
	}
	return global.Contains(a) && !within(a, notGlobal)
}

// ownAddresses are those of this machine.
func ownAddresses() (out []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, a.Unmap())
			}
		}
	}
	return out, err
}
