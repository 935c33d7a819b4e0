package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"antipode/api"
	apiadmin "antipode/api/admin"
	"antipode/api/protocol"
	"antipode/api/routing"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/replication/link"
	"antipode/replication/pair"
	"antipode/server/epochs"
	"antipode/server/listen"
	"antipode/server/location"
	"antipode/server/nameserver"
	"antipode/server/notices"
	"antipode/server/operator"
	"antipode/server/support"
	"antipode/services"
	"antipode/stamp/membership"
	"antipode/stamp/state"
)

// Names of the two locations.
const (
	North geo.Location = "northcentralus"
	South geo.Location = "southcentralus"
)

// Caches and bounds that fit a laptop. Pebble takes the memtables of all stores out of the
// cache's bytes: 16 MiB for each of 6 nodes, at most four times that while they flush. 192 to
// 480 MiB are left for blocks. A cache no larger than the memtables would hold no block, and
// every read would decompress an index.
const (
	cacheBytes = 576 << 20
	filesMax   = 4096
)

// portsOf is where an operator chooses the ports.
const portsOf = "--port-base"

// ClusterOptions configures a Cluster.
type ClusterOptions struct {
	Dir string
	// Version is that of the program.
	Version  string
	Host     string
	PortBase int
	// Zones are the DNS zones under which accounts have host names.
	Zones []geo.Zone
	// Hosts are further names by which clients may address the front ends: see api.Options.
	Hosts []string
	// DNSZone is the zone of the name server. Empty runs none.
	DNSZone geo.Zone
	// AdminHosts are further names and addresses of the admin ports: see Options of api/admin.
	AdminHosts []string
	Logger     *slog.Logger
	// Tick of the nodes; zero means 100 ms. Tests shorten it.
	Tick time.Duration
	// ScrubPeriod: see node.Options. Zero means its default.
	ScrubPeriod time.Duration
	// NameRest: see location.Options. Zero means none.
	NameRest time.Duration
	// Outbox: see location.Options.
	Outbox location.OutboxBudget
	// MetricsAccounts is how many accounts metrics show by their names: see metrics.RegisterGauges.
	MetricsAccounts int
	// Notices is the receiver of events of failovers; without a URL there is none. Logger is set by Open.
	Notices notices.Options
	// adjust lets tests change the options of a location. Nil changes nothing.
	adjust func(*location.Options)
	// free returns the free bytes of the disk of a folder. Nil means freeBytes.
	free func(dir string) (uint64, error)
	// end lets tests choose how a location is called by the other. Nil means direct.
	end func(*location.Location) pair.End
}

// Cluster is two locations in one process, with their front ends, a gateway and the admin
// ports. Methods may be called concurrently.
type Cluster struct {
	o         ClusterOptions
	clock     clock.Clock
	link      *link.Link
	shared    *state.Shared
	scans     *services.Scans
	locations map[geo.Location]*location.Location
	ports     map[geo.Location]Ports
	gateway   Ports
	token     apiadmin.TokenFile
	hopSecret string // see api.Options.HopSecret

	registry  *prometheus.Registry
	meters    *location.Meters
	forwarded *metrics.Gateway

	ids *protocol.RequestIDs
	// outside are the listeners that stay open while locations stop: gateway, admin ports.
	outside  *listen.Server
	names    *nameserver.Server
	follower *epochs.Follower // of the gateway
	notices  *notices.Notices // nil without a receiver
	forwards []*routing.Forwarder

	// made: this program has made the locations, and not finalized them yet: see JustMade.
	made atomic.Bool

	// step is what the creation of an account waits for, or nil.
	step atomic.Pointer[string]

	// servers start and stop the locations. set has the locations in the order of order.
	servers map[geo.Location]*location.Server
	set     location.Set
	admin   *operator.Backend
}

// order is the order in which locations are listed and started.
func order() []geo.Location { return []geo.Location{North, South} }

// Open listens on the ports of the gateway and the admin ports. Start must follow, and Close.
func Open(o ClusterOptions) (_ *Cluster, err error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.end == nil {
		o.end = direct
	}
	if o.free == nil {
		o.free = freeBytes
	}
	if err := membership.Claim(vfs.Default, o.Dir, membership.Owner{Kind: membership.Dev}); err != nil {
		return nil, err
	}
	made, err := claimNew(o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		o: o, clock: clock.System{}, link: link.New(), shared: state.NewShared(cacheBytes, filesMax), scans: services.NewScans(clock.System{}),
		locations: map[geo.Location]*location.Location{}, ports: map[geo.Location]Ports{}, servers: map[geo.Location]*location.Server{},
		gateway: Ports{o.Host, o.PortBase}, registry: metrics.NewRegistry(),
	}
	c.made.Store(made)
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	c.ids, c.hopSecret = protocol.NewRequestIDs(seed), rand.Text()
	if c.meters, err = location.NewMeters(c.registry, order()...); err != nil {
		return nil, err
	}
	if err := metrics.RegisterCache(c.registry, c.shared.CacheBytes); err != nil {
		return nil, err
	}
	if c.forwarded, err = metrics.NewGateway(c.registry, order(), routing.GatewayOutcomes()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if o.Notices.URL != "" {
		o.Notices.Logger = o.Logger
		c.notices = notices.Open(o.Notices)
	}
	for i, name := range order() {
		c.ports[name] = c.gateway.At(i)
		c.addLocation(name, c.location(i, name, uint64(seed[i])<<8|uint64(seed[i+8])))
	}
	if err := c.set.RegisterGauges(c.registry, o.MetricsAccounts); err != nil {
		return nil, err
	}
	c.admin = c.backend()
	join(c.clock, c.link, c.locations[North], c.locations[South], o.end)
	if c.token, err = apiadmin.OpenTokenFile(filepath.Join(o.Dir, apiadmin.TokenFileName)); err != nil {
		return nil, err
	}
	if err := c.openOutside(); err != nil {
		return c, err
	}
	return c, c.openNames()
}

// Start opens the stores and runs the locations. Reading large stores takes long: ctx ends Start
// after the current step. After an error, Close stops what runs. Accounts are created by
// EnsureAccount.
func (c *Cluster) Start(ctx context.Context) error {
	for _, name := range order() {
		if err := c.servers[name].Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) location(i int, name geo.Location, seed uint64) *location.Location {
	o := locationOptions(c.o.Dir, name, order()[1-i], geo.Timestamp(i))
	o.Clock, o.Link, o.Seed, o.Tick, o.Logger = c.clock, c.link, seed, c.o.Tick, c.o.Logger
	o.NameRest, o.Scans, o.Outbox = c.o.NameRest, c.scans, c.o.Outbox
	o.Bus.Server.Log, o.State = c.o.Logger, state.Options{Shared: c.shared, Logger: c.o.Logger}
	o.ScrubPeriod, o.Registerer = c.o.ScrubPeriod, c.registry
	o.Alone = func() bool { return c.alone(order()[1-i]) }
	c.meters.Watch(&o)
	if c.notices != nil {
		o.Notify = c.notices.Send
	}
	if c.o.adjust != nil {
		c.o.adjust(&o)
	}
	return location.New(o)
}

// alone reports whether a location goes on without the other one: an operator has stopped that, or cut the link (R21).
// One that has not started yet may have been promoted, and is waited for.
func (c *Cluster) alone(other geo.Location) bool {
	cut, _ := c.link.State()
	return cut || c.servers[other].Stopped()
}

// addLocation adds a location and what starts and stops it.
func (c *Cluster) addLocation(name geo.Location, l *location.Location) {
	c.locations[name], c.set = l, append(c.set, l)
	server := c.server(name)
	c.servers[name] = location.NewServer(location.ServerOptions{
		Location: l, Ports: portsOf, Logger: c.o.Logger,
		Listeners: func() []listen.Listener {
			return listen.Services(c.ports[name].Of, string(name), server)
		},
	})
}

// backend is what stands behind the admin ports.
func (c *Cluster) backend() *operator.Backend {
	began := c.clock.Mono()
	o := operator.Options{Clock: c.clock, Endpoints: c.gateway.Of, Development: true, NotReady: c.belowLevel}
	o.Support = support.Source{Name: "antipode dev", Gatherer: c.registry}.Gather
	for _, l := range c.set {
		o.Locations = append(o.Locations, &operator.Local{
			Location: l, Server: c.servers[l.Location()], Clock: c.clock, Alarms: c.meters.Alarms, Gather: o.Support,
			Process: func(n *wire.Node) { n.Version, n.UptimeSeconds = c.o.Version, (c.clock.Mono() - began).Seconds() },
		})
	}
	return operator.New(o)
}

// server builds the front end of a location, or the gateway if name is empty.
func (c *Cluster) server(name geo.Location) *api.Server {
	hosts := append([]string{c.o.Host, "127.0.0.1", "::1"}, c.o.Hosts...) // A copy at one port may name another one.
	o := api.Options{Locations: order(), Zones: c.o.Zones, Hosts: hosts, HopSecret: c.hopSecret, Clock: c.clock, IDs: c.ids, Gateway: c.forwarded, Logger: c.o.Logger}
	o.RequestsMax = listen.ConnsMax()
	from := "gateway"
	if name == "" {
		o.Epochs, o.Local = c.follower, c.call
	} else {
		l := c.locations[name]
		l.Serve(&o, c.meters)
		from = string(name)
	}
	var dial routing.Dial // The gateway reaches both locations directly.
	if name != "" {
		dial = c.link.Dial // Requests from one location to the other pass the link.
	}
	o.Forward = routing.NewForwarder(from, c.endpoint, dial).WithSecret(c.hopSecret)
	c.forwards = append(c.forwards, o.Forward)
	return api.NewServer(o)
}

// call implements routing.Local.
func (c *Cluster) call(l geo.Location, s geo.Service, w http.ResponseWriter, r *http.Request) bool {
	return c.servers[l].Call(c.ports[l].Of(s), w, r)
}

func (c *Cluster) endpoint(l geo.Location, s geo.Service) []string {
	return []string{c.ports[l].Of(s)}
}

// openOutside opens the listeners that stay open while locations stop.
func (c *Cluster) openOutside() (err error) {
	c.follower = epochs.Follow(epochs.Options{Sources: c.sources(), Clock: c.clock, Logger: c.o.Logger})
	ls := listen.Services(c.gateway.Of, "gateway", c.server(""))
	ls = append(ls, listen.Listener{Addr: c.gateway.Admin(), Handler: c.adminHandler(""), What: "admin", Limit: apiadmin.Limit})
	for _, l := range order() {
		ls = append(ls, listen.Listener{Addr: c.ports[l].Admin(), Handler: c.adminHandler(l), What: "admin of " + string(l), Limit: apiadmin.Limit})
	}
	c.outside, err = listen.Open(ls, portsOf, c.o.Logger)
	return err
}

func (c *Cluster) adminHandler(l geo.Location) http.Handler {
	return apiadmin.Handler(c.admin, c.registry, apiadmin.Options{
		Location: l, TokenFile: c.token, Listen: c.gateway.Admin(), Hosts: c.o.AdminHosts, Log: c.o.Logger,
	})
}

// Close drains and stops everything.
func (c *Cluster) Close() error {
	var errs []error
	for _, server := range c.servers {
		server.End()
	}
	if c.follower != nil {
		errs = append(errs, c.follower.Close())
	}
	if c.names != nil {
		errs = append(errs, c.names.Close())
	}
	if c.outside != nil {
		errs = append(errs, c.outside.Close())
	}
	var running []geo.Location
	for _, l := range order() {
		if server := c.servers[l]; server != nil && server.Running() {
			running = append(running, l)
		}
	}
	for _, l := range running {
		errs = append(errs, c.locations[l].Disconnect())
	}
	for _, l := range running {
		errs = append(errs, c.servers[l].Stop())
	}
	if c.notices != nil {
		c.notices.Close()
	}
	c.link.Close()
	for _, f := range c.forwards {
		f.Close()
	}
	c.shared.Close()
	return errors.Join(errs...)
}
