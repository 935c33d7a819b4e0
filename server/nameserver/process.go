package nameserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"antipode/api/admin"
	"antipode/failover/dns"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/server/config"
	"antipode/server/epochs"
	"antipode/server/listen"
)

// portsOf is where an operator chooses the ports of the process.
const portsOf = "the section listen of its configuration"

// secretBytesMax bounds the file of a key's secret.
const secretBytesMax = 1 << 10

// ProcessOptions configures a Process. All fields are required.
type ProcessOptions struct {
	Config config.DNS
	Clock  clock.Clock
	Logger *slog.Logger
}

// Process is what `antipode dns` runs.
type Process struct {
	names   *Server
	metrics *listen.Server
	http    *http.Client
}

// Open listens and serves. Close must follow.
func Open(o ProcessOptions) (_ *Process, err error) {
	p := &Process{http: epochs.NewHTTP()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	c, registry := o.Config, metrics.NewRegistry()
	ttl, err := time.ParseDuration(string(c.TTL))
	if err != nil {
		return nil, err
	}
	s := Options{
		Addr: c.Listen.DNS, Dir: c.Data, Ports: portsOf, Clock: o.Clock, Registerer: registry, Logger: o.Logger,
		Zone: dns.ZoneOptions{Origin: c.Zone, TTL: ttl, Contact: c.Contact},
	}
	for _, n := range c.Servers {
		list, err := parseAddresses(n.Addresses)
		if err != nil {
			return nil, err
		}
		s.Zone.Servers = append(s.Zone.Servers, dns.Host{Name: n.Name, Addresses: list})
	}
	for _, l := range c.Locations {
		list, err := parseAddresses(l.Addresses)
		if err != nil {
			return nil, err
		}
		admins, err := epochs.NewPorts(l.Admin, p.http)
		if err != nil {
			return nil, err
		}
		s.Zone.Locations = append(s.Zone.Locations, dns.Place{Location: l.Name, Addresses: list})
		s.Sources = append(s.Sources, epochs.NewSource(l.Name, admins.Names))
	}
	for _, push := range c.Push {
		secret, err := readSecret(push.SecretFile)
		if err != nil {
			return nil, err
		}
		s.Push = append(s.Push, Push{push.Server, dns.Key{Name: push.Key, Secret: secret}})
	}
	if p.metrics, err = listen.Open([]listen.Listener{{Addr: c.Listen.Metrics, What: "metrics", Limit: admin.Limit, Handler: admin.Metrics(registry)}}, portsOf, o.Logger); err != nil {
		return nil, err
	}
	p.names, err = Start(s)
	return p, err
}

func parseAddresses(list []string) (out []netip.Addr, err error) {
	for _, text := range list {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// readSecret reads the secret of a key, in base64. The file must be closed to users other than its owner and group.
func readSecret(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("%s is open to every user of the machine, or no file: chmod 640 %s, and make a new secret if somebody may have read it", path, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, secretBytesMax))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if !(dns.Key{Name: "key", Secret: secret}).Valid() {
		return "", fmt.Errorf("%s: want the secret of the key, in base64", path)
	}
	return secret, nil
}

// Addr returns the address of the name server.
func (p *Process) Addr() string { return p.names.Addr() }

// Close drains queries and scrapes and ends.
func (p *Process) Close() error {
	var errs []error
	if p.names != nil {
		errs = append(errs, p.names.Close())
	}
	if p.metrics != nil {
		errs = append(errs, p.metrics.Close())
	}
	p.http.CloseIdleConnections()
	return errors.Join(errs...)
}
