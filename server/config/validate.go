package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/internal/identity"
)

// bad reports an error in a field, with line and value if the file has the field.
func (w *walker) bad(field, message string) {
	w.add(field, w.lines[field], w.values[field], message)
}

func (w *walker) warn(field, message string) {
	w.bad(field, message)
	w.problems[len(w.problems)-1].Severity = Warning
}

// need reports an empty field. It returns whether the field has a value.
func (w *walker) need(field, value, what string) bool {
	if strings.TrimSpace(value) == "" {
		w.bad(field, "is missing: write "+what)
		return false
	}
	return true
}

// address checks host:port. dialled means that others connect to the address, so that it needs a
// host.
func (w *walker) address(field, value string, dialled bool) {
	what := "host:port, such as 10.0.0.1:10100"
	if !dialled {
		what = "an address to listen on, such as :10100 or 10.0.0.1:10100"
	}
	if !w.need(field, value, what) {
		return
	}
	host, port, err := net.SplitHostPort(value)
	number, numErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		w.bad(field, "write "+what)
	case numErr != nil || number == 0:
		w.bad(field, "the port must be a number from 1 to 65535")
	case strings.ContainsAny(host, " /@"):
		w.bad(field, "write "+what+", without a scheme or path")
	case dialled && (host == "" || host == "0.0.0.0" || host == "::"):
		w.bad(field, "others connect to it: write a name or address of one machine, such as 10.0.0.1:"+port)
	}
}

// zones checks the DNS zones of accounts.
func (w *walker) zones(zones []geo.Zone) {
	for i, z := range zones {
		if _, err := geo.ParseZone(string(z)); err != nil {
			w.bad(fmt.Sprintf("zones[%d]", i), "write the name of a DNS zone, such as storage.example")
		}
	}
}

// tls checks the paths of a certificate's files.
func (w *walker) tls(t TLS) {
	for _, f := range []struct{ field, value string }{{"tls.ca", t.CA}, {"tls.cert", t.Cert}, {"tls.key", t.Key}} {
		if w.need(f.field, f.value, "the path of the file that `antipode cert` made") && !filepath.IsAbs(f.value) {
			w.bad(f.field, "write the whole path, from /")
		}
	}
}

// ValidHost reports whether host is a DNS name or an IP address, without a port.
func ValidHost(host string) bool {
	_, err := geo.ParseZone(host) // A zone has the form of any DNS name.
	return err == nil || net.ParseIP(host) != nil
}

// hosts checks by which hosts a port may be addressed.
func (w *walker) hosts(field string, hosts []string) {
	for i, host := range hosts {
		if !ValidHost(host) {
			w.bad(fmt.Sprintf("%s[%d]", field, i), "write a name or an address, without a port")
		}
	}
}

// admin checks the section admin.
func (w *walker) admin(a Admin) {
	w.hosts("admin.hosts", a.Hosts)
	// If the default is wrong, the data folder is, which is reported there.
	if w.lines["admin.token_file"] > 0 && a.TokenFile != "" && !filepath.IsAbs(a.TokenFile) {
		w.bad("admin.token_file", "write the whole path, from /")
	}
}

// validate reports all invalid fields. n has its defaults.
func (n Node) validate(w *walker) {
	if !identity.ValidLabel(n.Stamp) {
		w.bad("stamp", "write "+identity.LabelWords+", the name given to `antipode cert ca --name`")
	}
	if n.ID == 0 {
		w.bad("node", "is missing or 0: write this node's number within its stamp, from 1")
	}
	if w.need("location", string(n.Location), "where the stamp is, such as northcentralus") && !identity.ValidLabel(string(n.Location)) {
		w.bad("location", "write "+identity.LabelWords+", such as northcentralus")
	}
	if strings.ContainsAny(n.Name, " \t\n\"/") {
		w.bad("name", "write a name without blanks, quotes and slashes, such as north-1")
	}
	if w.need("data", n.Data, "the folder of everything that is kept, such as /var/lib/antipode") && !filepath.IsAbs(n.Data) {
		w.bad("data", "write the whole path, from /: where the process starts must not matter")
	}
	n.validateBounds(w)
	n.validateListen(w)
	w.admin(n.Admin)
	w.zones(n.Zones)
	w.hosts("hosts", n.Hosts)
	w.copySources(n.CopySources)
	n.validatePeers(w)
	n.validateDomains(w)
	n.validatePair(w)
	w.notices(n.Notices)
	w.tls(n.TLS)
	n.validateNATS(w)
}

func (n Node) validateListen(w *walker) {
	taken := map[string]string{}
	listen := func(field, value string) {
		w.address(field, value, false)
		if first := taken[value]; first != "" {
			w.bad(field, "is the address of "+first+", too: write another port")
			return
		}
		taken[value] = field
	}
	listen("listen.node", n.Listen.Node)
	listen("listen.blob", n.Listen.Blob)
	listen("listen.queue", n.Listen.Queue)
	listen("listen.table", n.Listen.Table)
	listen("listen.hop", n.Listen.Hop)
	listen("listen.admin", n.Listen.Admin)
	if n.NATS.Mode == Cluster {
		listen("nats.listen", n.NATS.Listen)
	}
	if n.NATS.Mode != Outside && n.NATS.Client != "" {
		listen("nats.client", n.NATS.Client)
	}
	if host, _, err := net.SplitHostPort(n.Listen.Admin); err == nil {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			w.warn("listen.admin", "everyone who reaches the admin port sees status and metrics, and its token travels unencrypted; "+
				"write 127.0.0.1:10080 unless the network keeps others out")
		}
	}
}

func (n Node) validatePeers(w *walker) {
	ids, addresses := map[geo.NodeID]string{n.ID: "this node"}, map[string]string{}
	for i, p := range n.Peers {
		at := fmt.Sprintf("peers[%d].", i)
		switch first := ids[p.ID]; {
		case p.ID == 0:
			w.bad(at+"node", "is missing or 0: write the peer's number within the stamp, from 1")
		case first == "this node":
			w.bad(at+"node", "is this node: list the other nodes of the stamp only")
		case first != "":
			w.bad(at+"node", "is the number of "+first+", too: each node has its own")
		default:
			ids[p.ID] = fmt.Sprintf("peers[%d]", i)
		}
		w.address(at+"address", p.Address, true)
		if first := addresses[p.Address]; first != "" && p.Address != "" {
			w.bad(at+"address", "is the address of "+first+", too: each node has its own")
		}
		addresses[p.Address] = fmt.Sprintf("peers[%d]", i)
		if w.lines[at+"hop"] > 0 { // A wrong default comes from a field that is reported itself.
			w.address(at+"hop", p.Hop, true)
		}
	}
	switch len(n.Peers) {
	case 0:
		w.warn("peers", "the stamp has one node: it takes no writes, which need two replicas at least; a stamp that keeps data has three")
	case 1:
		w.warn("peers", "the stamp has two nodes: when one stops there are no writes; a stamp that keeps data has three")
	}
}

// replicas is how many nodes hold each write.
const replicas = 3

// validateDomains warns if three replicas cannot be placed in three domains.
func (n Node) validateDomains(w *walker) {
	for _, d := range n.narrowDomains() {
		w.warn(d.field, d.message)
	}
}

// DomainWarnings returns, for operators, the kinds of domains that are too few for three
// replicas.
func (n Node) DomainWarnings() []string {
	var out []string
	for _, d := range n.narrowDomains() {
		out = append(out, d.message)
	}
	return out
}

// narrow is a kind of domain of which the stamp has too few.
type narrow struct{ field, message string }

func (n Node) narrowDomains() []narrow {
	if len(n.Peers)+1 < replicas {
		return nil
	}
	var out []narrow
	check := func(field, what, happens string, of func(Peer) string) {
		own := Peer{FaultDomain: n.FaultDomain, UpgradeDomain: n.UpgradeDomain}
		domains := map[string]bool{}
		for _, p := range append([]Peer{own}, n.Peers...) {
			if of(p) != "" {
				domains[of(p)] = true
			}
		}
		if len(domains) < replicas {
			out = append(out, narrow{field, fmt.Sprintf("the stamp's nodes are in %d %s domains, and three replicas need %d: %s; "+
				"give each node another %s domain", len(domains), what, replicas, happens, what)})
		}
	}
	check("fault_domain", "fault", "one fault can take two copies of a write", func(p Peer) string { return p.FaultDomain })
	check("upgrade_domain", "upgrade", "an upgrade can stop two copies at once", func(p Peer) string { return p.UpgradeDomain })
	return out
}

// validateWitness checks what confirms the epochs of the location (R21).
func (n Node) validateWitness(w *walker) {
	if n.Pair.Away != Refuse && n.Pair.Away != Accept {
		w.bad("pair.away", "write refuse or accept")
	}
	if n.Witness == (WitnessAddress{}) {
		return
	}
	if !identity.ValidLabel(string(n.Witness.Location)) || n.Witness.Location == n.Location || n.Witness.Location == n.Pair.Location {
		w.bad("witness.location", "write the third place, where the witness is, as in its witness.yaml")
	}
	w.address("witness.address", n.Witness.Address, true)
	if n.Pair.Away == Accept {
		w.bad("pair.away", "is not used with a witness, whose lease writes need: remove it")
	}
}

func (n Node) validatePair(w *walker) {
	p := n.Pair
	if p.Location == "" {
		w.bad("pair.location", "is missing: write the name of the other location; a stamp that stands alone is not served yet")
		return
	}
	switch {
	case !identity.ValidLabel(string(p.Location)):
		w.bad("pair.location", "write "+identity.LabelWords+", such as southcentralus")
	case p.Location == n.Location:
		w.bad("pair.location", "is this location: write the other one")
	}
	n.validateWitness(w)
	for i, address := range p.Hops {
		w.address(fmt.Sprintf("pair.hops[%d]", i), address, true)
	}
	const want = "write the listen.hop addresses of the other location's nodes, such as [10.1.0.1:10110]"
	e := p.Endpoints
	switch endpoints := len(e.Blob)+len(e.Queue)+len(e.Table) > 0; {
	case len(p.Hops) == 0 && !endpoints:
		w.bad("pair.hops", "is missing: "+want)
	case len(p.Hops) == 0:
		w.warn("pair.endpoints", "the other location sees this node in place of the client; unless that is intended, "+want+" as pair.hops")
		w.endpoints("pair.endpoints.blob", e.Blob)
		w.endpoints("pair.endpoints.queue", e.Queue)
		w.endpoints("pair.endpoints.table", e.Table)
	case endpoints:
		w.bad("pair.endpoints", "is not used beside pair.hops: remove it")
	}
	if len(p.Nodes) == 0 {
		w.bad("pair.nodes", "is missing: write the node addresses of the other location, such as [10.1.0.1:10100]")
	}
	for i, address := range p.Nodes {
		w.address(fmt.Sprintf("pair.nodes[%d]", i), address, true)
	}
	p.validateNATS(w)
}

// validateNATS checks the other location's bus: addresses of its nodes, or URLs.
func (p Pair) validateNATS(w *walker) {
	if len(p.NATS) == 0 {
		w.bad("pair.nats", "is missing: write the nats.client addresses of the other location's nodes, such as [10.1.0.1:10222], "+
			"or the URLs of the NATS cluster it uses")
	}
	for i, server := range p.NATS {
		field := fmt.Sprintf("pair.nats[%d]", i)
		switch outside := strings.Contains(server, "://"); {
		case outside != p.OutsideNATS():
			w.bad(field, "write addresses of the other location's nodes only, or URLs only")
		case outside:
			w.natsURL(field, server)
		default:
			w.address(field, server, true)
		}
	}
	w.credentials("pair.nats_credentials", p.Credentials)
	if p.Credentials != "" && !p.OutsideNATS() {
		w.bad("pair.nats_credentials", "is not used with the other location's own nodes, which take this node's certificate: remove it")
	}
}

// endpoints checks the URLs of a front end.
func (w *walker) endpoints(field string, urls []string) {
	const what = "the URLs of the other location's front end, such as [http://10.1.0.1:10000]"
	if len(urls) == 0 {
		w.bad(field, "is missing: write "+what)
	}
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			w.bad(fmt.Sprintf("%s[%d]", field, i), "write "+what+", without a path")
		}
	}
}

// natsURL checks a server of an outside cluster.
func (w *walker) natsURL(field, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path != "" {
		w.bad(field, "write nats://host:port or tls://host:port")
	} else if u.User != nil {
		w.bad(field, "the file may be read by many: write the user into a credentials file")
	}
}

func (w *walker) credentials(field, path string) {
	if path != "" && !filepath.IsAbs(path) {
		w.bad(field, "write the whole path, from /")
	}
}

func (n Node) validateNATS(w *walker) {
	unused := func(field string, set bool) {
		if set {
			w.bad(field, fmt.Sprintf("is not used with nats.mode %s: remove it, or change the mode", n.NATS.Mode))
		}
	}
	switch n.NATS.Mode {
	case Embedded, Cluster, Outside:
	default:
		w.bad("nats.mode", "write embedded, cluster or outside")
		return
	}
	if n.NATS.Mode == Cluster {
		if len(n.NATS.Routes) == 0 {
			w.bad("nats.routes", "is missing: write the nats.listen addresses of the stamp's other nodes, such as [10.0.0.2:10200]")
		}
		for i, r := range n.NATS.Routes {
			w.address(fmt.Sprintf("nats.routes[%d]", i), r, true)
		}
	} else {
		unused("nats.listen", n.NATS.Listen != "")
		unused("nats.routes", len(n.NATS.Routes) > 0)
	}
	if n.NATS.Mode == Embedded && len(n.Peers) > 0 {
		w.warn("nats.mode", "the stamp has several nodes and a stream on this one only: while it stops, changes come in by pull alone; write cluster")
	}
	if n.NATS.Mode != Outside {
		unused("nats.urls", len(n.NATS.URLs) > 0)
		unused("nats.credentials", n.NATS.Credentials != "")
		unused("nats.replicas", n.NATS.Replicas != 0)
		return
	}
	if len(n.NATS.URLs) == 0 {
		w.bad("nats.urls", "is missing: write the servers, such as [nats://10.0.0.9:4222]")
	}
	for i, text := range n.NATS.URLs {
		w.natsURL(fmt.Sprintf("nats.urls[%d]", i), text)
	}
	w.credentials("nats.credentials", n.NATS.Credentials)
	if r := n.NATS.Replicas; r != 1 && r != 3 && r != 5 {
		w.bad("nats.replicas", "write 1, 3 or 5, and no more than the cluster has servers")
	}
	unused("nats.client", n.NATS.Client != "")
}
