// Package hosts decides which requests a port on which no stranger has a name takes by their Host.
//
// Invariant: a web page whose name its owner resolves to the port (DNS rebinding) gets nothing from it.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Hosts are the names and addresses by which a port may be addressed.
//
// A web page of any site can send requests to a port that the user's browser reaches. If the page's name leads to this port,
// it is of the same origin as the port for the browser, and could read the answers; but the browser sends that name as
// Host. A name is therefore taken only if it was configured. An address is taken if it is loopback, configured, or the
// one that the connection came to: no DNS answer makes a browser send these for a page of another server.
type Hosts struct {
	names     map[string]bool
	addresses map[netip.Addr]bool
	// anyAddress is set by WithAnyAddress.
	anyAddress bool
}

// New takes the address to listen on, and further hosts. An address to listen on may be none to be addressed by.
func New(listen string, more ...string) Hosts {
	h := Hosts{names: map[string]bool{"localhost": true}, addresses: map[netip.Addr]bool{}}
	for _, host := range append([]string{listen}, more...) {
		if name, addr, isAddr := split(host); isAddr {
			if !addr.IsUnspecified() {
				h.addresses[addr] = true
			}
		} else if name != "" {
			h.names[name] = true
		}
	}
	return h
}

// WithAnyAddress returns the hosts, and every address: for a port that clients reach by addresses which it does not know,
// behind a port mapping, a load balancer or another front end. A browser sends an address for the page that it names in
// its address bar, and rebinding needs a name.
func (h Hosts) WithAnyAddress() Hosts {
	h.anyAddress = true
	return h
}

// split takes a host with or without a port apart: a name in lower case without the dot
// at its end, or an address.
func split(host string) (name string, addr netip.Addr, isAddr bool) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return "", a.WithZone("").Unmap(), true
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), netip.Addr{}, false
}

// Named reports whether a host, with or without a port, is a name or an address that was configured, or localhost.
func (h Hosts) Named(host string) bool {
	name, addr, isAddr := split(host)
	return isAddr && h.addresses[addr] || !isAddr && h.names[name]
}

// Allow reports whether the Host of a request addresses the port.
func (h Hosts) Allow(r *http.Request) bool {
	name, addr, isAddr := split(r.Host)
	if !isAddr {
		return h.names[name]
	}
	if h.anyAddress || addr.IsLoopback() || h.addresses[addr] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().WithZone("").Unmap() == addr
}
