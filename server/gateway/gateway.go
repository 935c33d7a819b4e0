package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/api"
	"antipode/api/admin"
	"antipode/api/protocol"
	"antipode/api/routing"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/metrics"
	"antipode/server/config"
	"antipode/server/epochs"
	"antipode/server/listen"
	"antipode/server/operator"
	"antipode/server/support"
)

// Options configures a Gateway. All fields are required.
type Options struct {
	Config config.Gateway
	Clock  clock.Clock
	Logger *slog.Logger
}

// Gateway forwards each request to a node of the location that has the account, and
// operations to the nodes they are for. It keeps no state.
type Gateway struct {
	o       Options
	http    *http.Client
	forward *routing.Forwarder
	server  *listen.Server
	// follower asks the locations for the epochs of their accounts, over asking.
	follower *epochs.Follower
	asking   *http.Client
	draining atomic.Bool
	registry *prometheus.Registry
}

// portsOf is where an operator chooses the ports of the process.
const portsOf = "the section listen of its configuration"

// callWait bounds a call to the admin port of a node, which bounds its work below that.
const callWait = 70 * time.Second

// idleWait is how long a connection to an admin port is kept without a call.
const idleWait = 90 * time.Second

// newAdminClient returns the client of the nodes' admin ports. Its calls carry the admin token, so
// they never go through a proxy that the environment names.
func newAdminClient() *http.Client {
	return &http.Client{Timeout: callWait, Transport: &http.Transport{IdleConnTimeout: idleWait}}
}

// Open listens and serves.
func Open(o Options) (_ *Gateway, err error) {
	g := &Gateway{o: o, http: newAdminClient(), asking: epochs.NewHTTP(), registry: metrics.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	c := o.Config
	var token admin.TokenFile
	if c.Admin.TokenFile != "" {
		if token, err = admin.OpenTokenFile(c.Admin.TokenFile); err != nil {
			return nil, err
		}
	}
	backend, err := g.backend(token)
	if err != nil {
		return nil, err
	}
	if err := g.follow(); err != nil {
		return nil, err
	}
	clients, err := g.frontEnd(g.registry)
	if err != nil {
		return nil, err
	}
	ls := listen.Services(c.Listen.Services().Of, "gateway", clients)
	ls = append(ls, listen.Listener{
		Addr: c.Listen.Admin, What: "admin", Limit: admin.Limit,
		Handler: admin.Handler(backend, g.registry, admin.Options{TokenFile: token, Listen: c.Listen.Admin, Hosts: c.Admin.Hosts, Log: o.Logger}),
	})
	g.server, err = listen.Open(ls, portsOf, o.Logger)
	return g, err
}

// backend builds the backend of the admin port: all locations, through the admin ports of their
// nodes.
func (g *Gateway) backend(token admin.TokenFile) (*operator.Backend, error) {
	o := operator.Options{Clock: g.o.Clock, Endpoints: g.o.Config.Listen.Services().Of, Draining: g.draining.Load}
	o.Support = support.Source{Name: "gateway", Config: g.o.Config, Gatherer: g.registry}.Gather
	for _, l := range g.o.Config.Locations {
		r := &operator.Remote{Location: l.Name, Logger: g.o.Logger}
		for _, n := range l.Nodes {
			member := operator.Node{ID: n.ID}
			if n.Admin != "" {
				var err error
				if member.Admin, err = wire.New("http://"+n.Admin, g.http); err != nil {
					return nil, fmt.Errorf("admin port of %s: %w", wire.NodeName(l.Name, n.ID), err)
				}
				member.Admin.UseSharedToken(func() (wire.Token, error) { return token.Token(), nil })
			}
			r.Nodes = append(r.Nodes, member)
		}
		o.Locations = append(o.Locations, r)
	}
	return operator.New(o), nil
}

// follow begins to ask the admin ports of the nodes for the epochs of accounts. Nothing is known of a location whose
// nodes have no admin ports in the configuration.
func (g *Gateway) follow() error {
	o := epochs.Options{Clock: g.o.Clock, Logger: g.o.Logger}
	for _, l := range g.o.Config.Locations {
		var addresses []string
		for _, n := range l.Nodes {
			if n.Admin != "" {
				addresses = append(addresses, n.Admin)
			}
		}
		if len(addresses) == 0 {
			continue
		}
		ports, err := epochs.NewPorts(addresses, g.asking)
		if err != nil {
			return fmt.Errorf("admin ports of %s: %w", l.Name, err)
		}
		o.Sources = append(o.Sources, epochs.NewSource(l.Name, ports.Names))
	}
	g.follower = epochs.Follow(o)
	return nil
}

// frontEnd builds what answers clients.
func (g *Gateway) frontEnd(registry *prometheus.Registry) (*api.Server, error) {
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	g.forward = routing.NewForwarder("gateway", g.endpoints, nil)
	if files := g.o.Config.TLS; files != (config.TLS{}) {
		keyring, err := identity.OpenGatewayKeyring(identity.Files{CA: files.CA, Cert: files.Cert, Key: files.Key}, g.o.Clock, g.o.Logger)
		if err != nil {
			return nil, fmt.Errorf("certificates of the section tls: %w", err)
		}
		if err := metrics.RegisterCertificate(registry, keyring.NotAfter); err != nil {
			return nil, err
		}
		g.forward.WithTLS(keyring.HopClientConfig(g.locations()...))
	}
	observer, err := metrics.NewGateway(registry, g.locations(), routing.GatewayOutcomes())
	if err != nil {
		return nil, err
	}
	c := g.o.Config
	return api.NewServer(api.Options{
		Locations: g.locations(), Zones: c.Zones, Hosts: append([]string{c.Listen.Blob, c.Listen.Queue, c.Listen.Table}, c.Hosts...), Epochs: g.follower, Clock: g.o.Clock, IDs: protocol.NewRequestIDs(seed), Forward: g.forward, Gateway: observer, Leaving: g.draining.Load, Logger: g.o.Logger,
		RequestsMax: listen.ConnsMax(),
	}), nil
}

// locations returns the locations in the order of the configuration.
func (g *Gateway) locations() []geo.Location {
	var out []geo.Location
	for _, l := range g.o.Config.Locations {
		out = append(out, l.Name)
	}
	return out
}

// endpoints returns the addresses of a service's front ends in a location: the hop listeners of
// its nodes if the gateway has a certificate.
func (g *Gateway) endpoints(name geo.Location, s geo.Service) []string {
	var out []string
	for _, l := range g.o.Config.Locations {
		if l.Name != name {
			continue
		}
		for _, n := range l.Nodes {
			if g.o.Config.TLS != (config.TLS{}) {
				out = append(out, routing.HopAddress(n.Hop, s))
			} else {
				out = append(out, n.Services().Of(s))
			}
		}
	}
	return out
}

// Drain makes the gateway not ready, goes on for the notice of the section drain, then takes no new connection and lets
// the requests under way end, within the time of the section. It returns what is left then. Close must follow.
func (g *Gateway) Drain() (left []string) {
	d := g.o.Config.Drain
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout.Duration())
	defer cancel()
	g.draining.Store(true)
	_ = clock.Wait(ctx, d.Notice.Duration()) // It is shorter than the time.
	if n := g.server.Drain(ctx); n > 0 {
		left = append(left, fmt.Sprintf("requests had not ended and are broken off, with an outcome that is unknown to their clients: %d", n))
	}
	return left
}

// Close drains requests and closes the ports.
func (g *Gateway) Close() error {
	var err error
	if g.server != nil {
		err = g.server.Close()
	}
	if g.forward != nil {
		g.forward.Close()
	}
	if g.follower != nil {
		err = errors.Join(err, g.follower.Close())
	}
	g.asking.CloseIdleConnections()
	g.http.CloseIdleConnections()
	return err
}
