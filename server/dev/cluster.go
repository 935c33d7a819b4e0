package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/api"
	"antipode/api/admin"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/replication/link"
	"antipode/server/listen"
	"antipode/server/location"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/state"
)

// Names of the two locations that a Cluster runs.
const (
	North geo.Location = "northcentralus"
	South geo.Location = "southcentralus"
)

// Caches and bounds of a laptop. Pebble takes the memtables of all stores out of the
// cache's bytes: 6 nodes with 16 MiB of state each, four times that at most while they
// flush, so that 192 to 480 MiB are left for blocks. A cache no larger than the memtables
// holds no block at all, and every read decompresses an index.
const (
	cacheBytes = 576 << 20
	filesMax   = 4096
)

// portsOf is where an operator chooses the ports.
const portsOf = "--port-base"

// ClusterOptions configures a Cluster.
type ClusterOptions struct {
	Dir      string
	Host     string
	PortBase int
	// Zones are those under which accounts have host names of their own.
	Zones []geo.Zone
	// AdminHosts are further names and addresses of the admin ports: see admin.Options.
	AdminHosts []string
	Logger     *slog.Logger
	// Tick of the nodes; zero means 100 ms. Tests shorten it.
	Tick time.Duration
	// ScrubPeriod: see node.Options. Zero means its default.
	ScrubPeriod time.Duration
	// NameRest: see location.Options. Zero means none.
	NameRest time.Duration
	// adjust lets tests look into a location. Nil changes nothing.
	adjust func(*location.Options)
	// end lets tests say how a location is asked by the other. Nil means directly.
	end func(*location.Location) link.End
}

// Cluster is two locations in one process, with their front ends, the front door
// and the admin ports. Methods may be called concurrently.
type Cluster struct {
	o         ClusterOptions
	clock     clock.Clock
	link      *link.Link
	shared    *state.Shared
	scans     *services.Scans
	locations map[geo.Location]*location.Location
	ports     map[geo.Location]Ports
	door      Ports
	started   time.Time
	token     admin.TokenFile
	hopSecret string // see api.Options.HopSecret

	registry *prometheus.Registry
	meters   *location.Meters
	passed   *metrics.Door // what the front door handed on

	ids      *protocol.RequestIDs
	outside  *listen.Front // front door and admin ports
	forwards []*api.Forwarder

	// life ends with Close, and with it starts that are under way.
	life   context.Context //nolint:containedctx // Ends the goroutines of begin at Close.
	end    context.CancelFunc
	starts sync.WaitGroup
	// beginMu is held while a start is added to starts and while life ends, so that none is
	// added afterwards.
	beginMu sync.Mutex
	// step is what the creation of an account waits for; nil for nothing.
	step atomic.Pointer[string]

	mu     sync.Mutex
	fronts map[geo.Location]*listen.Front // of the locations that run
}

// order is the order in which locations are listed and started.
func order() []geo.Location { return []geo.Location{North, South} }

// Open listens on the front door and the admin ports. Start must follow to run the
// locations, and Close.
func Open(o ClusterOptions) (_ *Cluster, err error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.end == nil {
		o.end = direct
	}
	c := &Cluster{
		o: o, clock: clock.System{}, link: link.New(), shared: state.NewShared(cacheBytes, filesMax), scans: services.NewScans(clock.System{}),
		locations: map[geo.Location]*location.Location{}, ports: map[geo.Location]Ports{}, fronts: map[geo.Location]*listen.Front{},
		door: Ports{o.Host, o.PortBase}, registry: metrics.NewRegistry(),
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.started = c.clock.Now()
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	c.ids, c.hopSecret = protocol.NewRequestIDs(seed), rand.Text()
	if c.meters, err = location.NewMeters(c.registry, samples{c}, order()...); err != nil {
		return nil, err
	}
	if c.passed, err = metrics.NewDoor(c.registry, order(), api.DoorOutcomes()); err != nil {
		return nil, err
	}
	for i, name := range order() {
		c.ports[name] = c.door.At(i)
		c.locations[name] = c.location(i, name, uint64(seed[i])<<8|uint64(seed[i+8]))
	}
	join(c.link, c.locations[North], c.locations[South], o.end)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.token, err = admin.OpenTokenFile(filepath.Join(o.Dir, admin.TokenFileName)); err != nil {
		return nil, err
	}
	return c, c.openOutside()
}

// Start opens the data folders and runs the locations. It takes as long as that takes: ctx
// ends it after the step under way. Accounts are made apart: see EnsureAccount. After an
// error Close ends what runs.
func (c *Cluster) Start(ctx context.Context) error {
	for _, name := range order() {
		if err := c.startLocation(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) location(i int, name geo.Location, seed uint64) *location.Location {
	o := locationOptions(c.o.Dir, name, order()[1-i], geo.Timestamp(i))
	o.Clock, o.Link, o.Seed, o.Tick, o.Logger = c.clock, c.link, seed, c.o.Tick, c.o.Logger
	o.NameRest, o.Scans = c.o.NameRest, c.scans
	o.Carrier.Server.Log, o.Engine = c.o.Logger, state.Options{Shared: c.shared, Logger: c.o.Logger}
	o.ScrubPeriod, o.Registerer = c.o.ScrubPeriod, c.registry
	c.meters.Watch(&o)
	if c.o.adjust != nil {
		c.o.adjust(&o)
	}
	return location.New(o)
}

// server builds the front end of a location, or the front door where name is empty.
func (c *Cluster) server(name geo.Location) *api.Server {
	o := api.Options{Locations: order(), Zones: c.o.Zones, HopSecret: c.hopSecret, Clock: c.clock, IDs: c.ids, Door: c.passed, Logger: c.o.Logger}
	from := "door"
	if name != "" {
		l := c.locations[name]
		l.Serve(&o, func(bytes int64) { c.meters.Abandoned.Add(name, bytes) })
		from = string(name)
	}
	o.Observe = func(s geo.Service, op string, status int, took time.Duration) {
		if name != "" {
			c.meters.Requests.Observe(name, s, op, status, took)
		}
	}
	var dial api.Dial // The door stands beside the locations.
	if name != "" {
		dial = c.link.Dial // What goes from one location to the other passes the link.
	}
	o.Forward = api.NewForwarder(from, c.endpoint, dial).WithSecret(c.hopSecret)
	c.forwards = append(c.forwards, o.Forward)
	return api.NewServer(o)
}

func (c *Cluster) endpoint(l geo.Location, s geo.Service) []string {
	return []string{c.ports[l].Of(s)}
}

// accounts asks all locations that run at once: one without a quorum is slow to
// say so, and the other's answer is as good.
type doorDirectory struct{ c *Cluster }

// Account implements api.Directory.
func (d doorDirectory) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		account *catalog.Account
		err     error
	}
	answers := make(chan answer, len(d.c.locations))
	asked := 0
	for _, l := range order() {
		if loc := d.c.locations[l]; loc.Stamp() != nil {
			asked++
			go func() {
				a, err := loc.Directory.Account(ctx, name)
				answers <- answer{a, err}
			}()
		}
	}
	err := error(location.ErrStopped)
	for range asked {
		a := <-answers
		if a.err == nil {
			return a.account, nil
		}
		if !errors.Is(err, storageerr.AccountNotFound) {
			err = a.err
		}
	}
	return nil, err
}

// openOutside listens on the front door and the admin ports, which stay up while
// locations stop.
func (c *Cluster) openOutside() (err error) {
	door := c.server("")
	ls := listen.Services(c.door.Of, "front door", door.Handler)
	ls = append(ls, listen.Listener{Addr: c.door.Admin(), Handler: c.adminHandler(""), What: "admin", Limit: admin.Limit})
	for _, l := range order() {
		ls = append(ls, listen.Listener{Addr: c.ports[l].Admin(), Handler: c.adminHandler(l), What: "admin of " + string(l), Limit: admin.Limit})
	}
	c.outside, err = listen.Open(ls, portsOf, c.o.Logger)
	return err
}

func (c *Cluster) adminHandler(l geo.Location) http.Handler {
	return admin.Handler(control{c}, c.registry, admin.Options{
		Location: l, TokenFile: c.token, Listen: c.door.Admin(), Hosts: c.o.AdminHosts, Log: c.o.Logger,
	})
}

// beginWait is how long an operator who starts a location waits to hear that it cannot
// start. A start that takes longer goes on.
const beginWait = 5 * time.Second

// begin starts a location, for as long as the cluster is open. It returns when the
// location runs or has failed to start, or after beginWait.
func (c *Cluster) begin(ctx context.Context, name geo.Location) error {
	ctx, cancel := context.WithTimeout(ctx, beginWait)
	defer cancel()
	done := make(chan error, 1)
	c.beginMu.Lock()
	if c.life.Err() != nil {
		c.beginMu.Unlock()
		return location.ErrStopped
	}
	c.starts.Go(func() {
		err := c.startLocation(c.life, name)
		if err != nil {
			c.o.Logger.Error("a location did not start", "location", name, "error", err)
		}
		done <- err
	})
	c.beginMu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	case <-c.life.Done():
	}
	return nil
}

// startLocation starts a location and its front end.
func (c *Cluster) startLocation(ctx context.Context, name geo.Location) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fronts[name] != nil {
		return fmt.Errorf("location %s runs already", name)
	}
	l := c.locations[name]
	f, err := listen.Open(listen.Services(c.ports[name].Of, string(name), c.server(name).Handler), portsOf, c.o.Logger)
	if err != nil {
		return err
	}
	if err := l.Start(ctx); err != nil {
		return errors.Join(err, f.Close())
	}
	c.fronts[name] = f
	return nil
}

// stopLocation drains and stops a location's front end, then the location.
func (c *Cluster) stopLocation(name geo.Location) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fronts[name]
	if f == nil {
		return fmt.Errorf("location %s is stopped", name)
	}
	delete(c.fronts, name)
	return errors.Join(f.Close(), c.locations[name].Stop())
}

// Close drains and stops everything. A restart on the same folder is safe.
func (c *Cluster) Close() error {
	var errs []error
	c.beginMu.Lock()
	c.end()
	c.beginMu.Unlock()
	if c.outside != nil {
		errs = append(errs, c.outside.Close())
	}
	c.starts.Wait()
	var running []geo.Location
	c.mu.Lock()
	for _, l := range order() {
		if c.fronts[l] != nil {
			running = append(running, l)
		}
	}
	c.mu.Unlock()
	for _, l := range running {
		errs = append(errs, c.locations[l].Disconnect())
	}
	for _, l := range running {
		errs = append(errs, c.stopLocation(l))
	}
	c.link.Close()
	for _, f := range c.forwards {
		f.Close()
	}
	c.shared.Close()
	return errors.Join(errs...)
}
