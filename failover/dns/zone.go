package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	msg "github.com/miekg/dns"

	"antipode/geo"
	"antipode/internal/identity"
)

// ttlDefault is how long a resolver may keep an answer. For as long after a move clients may come to the
// former location, which forwards them or names the other one. At five seconds a resolver with any
// number of clients asks for a name twelve times a minute, which costs a server less than a connection
// that its clients open; below one second resolvers round up or ask for each request.
const ttlDefault = 5 * time.Second

// Bounds of ZoneOptions.TTL.
const (
	ttlLeast = time.Second
	ttlMax   = time.Hour
)

// The labels between those of accounts and the zone.
const (
	labelEpoch = "_epoch"
	labelStore = "store"
)

// ZoneOptions configures a Zone. Origin and Locations are required.
type ZoneOptions struct {
	Origin geo.Zone
	// TTL of all records. Zero means 5 s. A long one has clients go to the former location after a move; a
	// short one has resolvers ask more often.
	TTL time.Duration
	// Contact is the mailbox of the SOA record, with a dot for the @. Empty means hostmaster.ORIGIN.
	Contact geo.Zone
	// Servers are the name servers of the zone, the first one the primary of the SOA record. Empty means
	// ns.ORIGIN, without an address.
	Servers []Host
	// Locations are the places that accounts are served from.
	Locations []Place
}

// Host is a name server. Addresses of one outside the zone are not answered.
type Host struct {
	Name      geo.Zone
	Addresses []netip.Addr
}

// Place is a location and the addresses of its front ends.
type Place struct {
	Location  geo.Location
	Addresses []netip.Addr
}

// Zone makes the names and records of a zone. Methods may be called concurrently.
type Zone struct {
	origin  string // with a dot at the end, in lower case
	ttl     uint32
	contact string
	servers []host
	places  map[geo.Location][]netip.Addr
}

// host is a name server with the name that records have.
type host struct {
	name      string
	addresses []netip.Addr
}

// NewZone checks the options. It returns all that is wrong with them.
func NewZone(o ZoneOptions) (*Zone, error) {
	if o.TTL == 0 {
		o.TTL = ttlDefault
	}
	if o.Contact == "" {
		o.Contact = "hostmaster." + o.Origin
	}
	if len(o.Servers) == 0 {
		o.Servers = []Host{{Name: "ns." + o.Origin}}
	}
	z := &Zone{origin: fqdn(o.Origin), ttl: uint32(o.TTL / time.Second), contact: fqdn(o.Contact), places: map[geo.Location][]netip.Addr{}}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := geo.ParseZone(string(o.Origin)); err != nil || len(o.Origin) > originMax {
		bad("zone %q: want a DNS name of %d bytes at most", o.Origin, originMax)
	}
	if o.TTL < ttlLeast || o.TTL > ttlMax {
		bad("ttl %s: want %s to %s", o.TTL, ttlLeast, ttlMax)
	}
	for _, s := range o.Servers {
		name := fqdn(s.Name)
		if _, err := geo.ParseZone(string(s.Name)); err != nil || name == z.origin {
			bad("name server %q: want a DNS name, and not the zone's", s.Name)
		} else if under := z.under(name); len(under) > 0 && z.ours(under[len(under)-1]) {
			bad("name server %q: blob, queue, table and store of the zone are for accounts and locations", s.Name)
		}
		z.servers = append(z.servers, host{name, s.Addresses})
	}
	for _, p := range o.Locations {
		if !identity.ValidLabel(string(p.Location)) {
			bad("location %q: want %s", p.Location, identity.LabelWords)
		}
		if len(p.Addresses) == 0 || z.places[p.Location] != nil {
			bad("location %s: want it once, with the addresses of its front ends", p.Location)
		}
		z.places[p.Location] = p.Addresses
	}
	if len(o.Locations) == 0 {
		bad("locations are missing")
	}
	return z, errors.Join(errs...)
}

// originMax leaves room for the longest name, SERVICE.LOCATION.store and _epoch.ACCOUNT-secondary.SERVICE.
const originMax = 170

func fqdn(z geo.Zone) string { return strings.ToLower(string(z)) + "." }

// ours reports whether the label right below the origin is one of this package's names.
func (z *Zone) ours(label string) bool {
	s, err := geo.ParseService(label)
	return err == nil && slices.Contains(geo.Services[:], s) || label == labelStore
}

// kind is what a name is.
type kind int

// The kinds. absent is the zero value.
const (
	absent   kind = iota
	outside       // not in the zone
	apex          // the zone itself
	interior      // no record, but names below it
	server        // a name server in the zone
	place         // the front ends of a location
	alias         // an account
	epoch         // the epoch of an account
)

// node is a name of the zone. The fields are set as far as the kind has them.
type node struct {
	kind      kind
	service   geo.Service
	account   geo.Account
	secondary bool
	// clone: it is the name of the account's clone. It has no epoch record.
	clone    bool
	location geo.Location
	host     host
}

// under returns the labels of a name that are left of the origin's, in lower case; nil if the name is not
// below the origin.
func (z *Zone) under(name string) []string {
	name = msg.CanonicalName(name)
	if _, ok := msg.IsDomainName(name); !ok || name == z.origin || !msg.IsSubDomain(z.origin, name) {
		return nil
	}
	labels := msg.SplitDomainName(name)
	return labels[:len(labels)-msg.CountLabel(z.origin)]
}

// parse returns what a name is, in any case. That an account exists is not asked.
func (z *Zone) parse(name string) node {
	if msg.CanonicalName(name) == z.origin {
		return node{kind: apex}
	}
	labels := z.under(name)
	switch {
	case len(labels) == 0:
		return node{kind: outside}
	case z.ours(labels[len(labels)-1]):
		return z.own(labels)
	}
	name = msg.CanonicalName(name)
	for _, h := range z.servers {
		if h.name == name {
			return node{kind: server, host: h}
		}
		if msg.IsSubDomain(name, h.name) {
			return node{kind: interior}
		}
	}
	return node{}
}

// own parses the labels below the origin of a name of accounts and locations.
func (z *Zone) own(labels []string) node {
	top := labels[len(labels)-1]
	if top == labelStore {
		return z.store(labels[:len(labels)-1])
	}
	s, err := geo.ParseService(top)
	if err != nil {
		return node{}
	}
	n := node{kind: alias, service: s}
	switch {
	case len(labels) == 1:
		return node{kind: interior}
	case len(labels) == 3 && labels[0] == labelEpoch:
		n.kind = epoch
	case len(labels) > 2:
		return node{}
	}
	label := labels[len(labels)-2]
	if n.account, n.secondary = geo.SplitSecondary(label); !n.secondary && n.kind == alias {
		n.account, n.clone = geo.SplitClone(label)
	}
	if !n.account.Valid() {
		return node{}
	}
	return n
}

// store parses what is left of the label of locations: SERVICE.LOCATION, or a part of that.
func (z *Zone) store(labels []string) node {
	if len(labels) == 0 {
		return node{kind: interior}
	}
	l := geo.Location(labels[len(labels)-1])
	if z.places[l] == nil || len(labels) > 2 {
		return node{}
	}
	if len(labels) == 1 {
		return node{kind: interior}
	}
	s, err := geo.ParseService(labels[0])
	if err != nil || s == geo.Catalog {
		return node{}
	}
	return node{kind: place, service: s, location: l}
}

// aliasName returns the name of an account.
func (z *Zone) aliasName(a geo.Account, s geo.Service, secondary bool) string {
	label := string(a)
	if secondary {
		label += geo.SecondarySuffix
	}
	return label + "." + s.String() + "." + z.origin
}

// epochName returns the name of the TXT record of an account's name.
func epochName(alias string) string { return labelEpoch + "." + alias }

// placeName returns the name of a location's front ends.
func (z *Zone) placeName(s geo.Service, l geo.Location) string {
	return s.String() + "." + string(l) + "." + labelStore + "." + z.origin
}

func (z *Zone) header(name string, t uint16) msg.RR_Header {
	return msg.RR_Header{Name: name, Rrtype: t, Class: msg.ClassINET, Ttl: z.ttl}
}

// soa returns the SOA record. The times are those of a zone that a secondary server would ask for often;
// the last one is how long an answer that a name does not exist may be kept.
func (z *Zone) soa(serial uint32) msg.RR {
	return &msg.SOA{
		Hdr: z.header(z.origin, msg.TypeSOA), Ns: z.servers[0].name, Mbox: z.contact,
		Serial: serial, Refresh: 60, Retry: 10, Expire: 86400, Minttl: z.ttl,
	}
}

func (z *Zone) cname(alias string, s geo.Service, l geo.Location) msg.RR {
	return &msg.CNAME{Hdr: z.header(alias, msg.TypeCNAME), Target: z.placeName(s, l)}
}

// stringMax is how long a string of a TXT record may be. A text of two long locations has two strings.
const stringMax = 255

func (z *Zone) txt(name, text string) msg.RR {
	rr := &msg.TXT{Hdr: z.header(name, msg.TypeTXT)}
	for ; len(text) > stringMax; text = text[stringMax:] {
		rr.Txt = append(rr.Txt, text[:stringMax])
	}
	rr.Txt = append(rr.Txt, text)
	return rr
}

// addresses returns the A or AAAA records of a name.
func (z *Zone) addresses(name string, list []netip.Addr, t uint16) (out []msg.RR) {
	for _, a := range list {
		a = a.Unmap()
		switch {
		case a.Is4() && t == msg.TypeA:
			out = append(out, &msg.A{Hdr: z.header(name, t), A: a.AsSlice()})
		case a.Is6() && t == msg.TypeAAAA:
			out = append(out, &msg.AAAA{Hdr: z.header(name, t), AAAA: a.AsSlice()})
		}
	}
	return out
}
