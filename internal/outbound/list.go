package outbound

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"antipode/geo"
)

// Entry permits a server.
type Entry struct {
	// Host is a DNS name or an address, or *. and a DNS name for all names under that. It may have a port; without one it is
	// that of the scheme, 80 or 443.
	Host string
	// AllowPrivate permits a name to have private addresses (RFC 1918, RFC 6598, RFC 4193). An address that is listed as such
	// is permitted whatever it is.
	AllowPrivate bool
}

// ErrEntry reports a Host that is none.
var ErrEntry = errors.New("want a name such as storage.example, *.storage.example for all names under it, or an address; perhaps with a port")

// List has the servers that are permitted. The zero value permits none.
type List []rule

// rule is an Entry, read.
type rule struct {
	// name is in lower case, without a dot at the end; empty for an address.
	name string
	// under: all names under name are meant, and not name.
	under bool
	addr  netip.Addr
	// port is empty for that of the scheme.
	port    string
	private bool
}

// NewList reads entries. The error is ErrEntry.
func NewList(entries ...Entry) (List, error) {
	var l List
	for _, e := range entries {
		r, err := parseRule(e)
		if err != nil {
			return nil, err
		}
		l = append(l, r)
	}
	return l, nil
}

func parseRule(e Entry) (rule, error) {
	r := rule{private: e.AllowPrivate}
	host := e.Host
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ":") { // Not an IPv6 address alone.
		if host, r.port, err = net.SplitHostPort(host); err != nil || !validPort(r.port) {
			return rule{}, ErrEntry
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if r.addr = addr.Unmap(); addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
			return rule{}, ErrEntry
		}
		return r, nil
	}
	host, r.under = strings.CutPrefix(host, "*.")
	name, err := geo.ParseZone(host) // It has the form of any DNS name.
	if err != nil {
		return rule{}, ErrEntry
	}
	r.name = string(name)
	return r, nil
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Permits reports whether a URL names a server of the list. Which addresses that has is looked at with each connection.
func (l List) Permits(u *url.URL) bool {
	port, ok := portOf(u)
	if !ok {
		return false
	}
	_, listed := l.of(u.Hostname(), port)
	return listed
}

// portOf returns the port of a URL; ok is false for what is no URL of an HTTP server.
func portOf(u *url.URL) (port string, ok bool) {
	switch port = u.Port(); {
	case u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.HasSuffix(u.Host, ":"):
		return "", false
	case port != "":
		return port, validPort(port)
	case u.Scheme == "https":
		return "443", true
	}
	return "80", true
}

// of returns what is permitted for a host and a port.
func (l List) of(host, port string) (p permission, listed bool) {
	addr, err := netip.ParseAddr(host)
	isAddr := err == nil
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	for _, r := range l {
		if r.port != port && (r.port != "" || port != "80" && port != "443") {
			continue
		}
		switch {
		case isAddr && r.addr.IsValid() && addr.Unmap() == r.addr:
			return permission{literal: true}, true
		case isAddr || r.name == "":
		case r.under && strings.HasSuffix(name, "."+r.name), !r.under && name == r.name:
			listed, p.private = true, p.private || r.private
		}
	}
	return p, listed
}
