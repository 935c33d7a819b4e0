package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	wire "antipode/client/admin"
)

// hosts are the names and addresses by which a port may be addressed.
//
// A web page of any site can send requests to a port that the user's browser reaches. Two
// checks keep it out, on every route:
//   - Host. A page whose name the attacker resolves to this port (DNS rebinding) is of the
//     same origin as the port for the browser, and could read its answers; but the browser
//     sends that name as Host. A name is therefore taken only if it was configured. An
//     address is taken if it is loopback, configured, or the one that the connection came
//     to: no DNS answer makes a browser send these for a page of another server.
//   - Origin and Sec-Fetch-Site, which a browser adds to what pages send: only pages that
//     this port served itself may send anything, be it a GET.
type hosts struct {
	names     map[string]bool
	addresses map[netip.Addr]bool
}

// newHosts takes what Options name. An address to listen on may be none to be addressed by.
func newHosts(listen string, more []string) hosts {
	h := hosts{names: map[string]bool{"localhost": true}, addresses: map[netip.Addr]bool{}}
	for _, host := range append([]string{listen}, more...) {
		if name, addr, isAddr := splitHost(host); isAddr {
			if !addr.IsUnspecified() {
				h.addresses[addr] = true
			}
		} else if name != "" {
			h.names[name] = true
		}
	}
	return h
}

// splitHost takes a host with or without a port apart: a name in lower case without the dot
// at its end, or an address.
func splitHost(host string) (name string, addr netip.Addr, isAddr bool) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return "", a.WithZone("").Unmap(), true
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), netip.Addr{}, false
}

// allow reports whether the Host of a request addresses this port.
func (h hosts) allow(r *http.Request) bool {
	name, addr, isAddr := splitHost(r.Host)
	if !isAddr {
		return h.names[name]
	}
	if addr.IsLoopback() || h.addresses[addr] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().WithZone("").Unmap() == addr
}

// sameOrigin reports whether no page of another origin sent the request.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // None: typed in by the user.
	default:
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// guard refuses what a page of another site sends.
func (p *port) guard(r *http.Request) error {
	if !p.hosts.allow(r) {
		return &wire.Error{Status: http.StatusForbidden, Code: codeHost, Message: sentence("serve", route(r), fmt.Sprintf(
			"it was sent to the host %q, which is not a name of this port: use its address, or add the name to the configuration", r.Host))}
	}
	if !sameOrigin(r) {
		return &wire.Error{Status: http.StatusForbidden, Code: codeCrossOrigin, Message: sentence(
			"serve", route(r), "a page of another origin sent it: use antipodectl")}
	}
	return nil
}
