package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"antipode/api"
	"antipode/api/admin"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/outbound"
	"antipode/metrics"
	"antipode/replication/link"
	"antipode/server/config"
	"antipode/server/listen"
	"antipode/server/location"
	"antipode/server/notices"
	"antipode/server/operator"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
	"antipode/stamp/transport"
)

// Bounds of a node process.
const (
	filesMax    = 2048
	streamBytes = 1 << 30
)

// portsOf is where an operator chooses the ports of the process.
const portsOf = "the section listen of its configuration"

// Options configures a Node.
type Options struct {
	Config config.Node
	// Version is that of the program.
	Version string
	// Warnings of the configuration are shown in the status.
	Warnings []string
	Clock    clock.Clock
	Logger   *slog.Logger
	// Tick of the node; zero means 100 ms. Tests shorten it.
	Tick time.Duration
}

// Node is a node that runs in this process, with its front end and its admin port. Methods may
// be called concurrently.
type Node struct {
	o  Options
	id geo.NodeID
	// began is the monotonic time at which the process opened it.
	began time.Duration
	// peers are the other nodes of the stamp by number.
	peers map[geo.NodeID]config.Peer

	keyring   *identity.Keyring
	link      *link.Link
	transport *transport.Transport
	shared    *state.Shared
	location  *location.Location
	witness   *witness.Client  // nil without one
	notices   *notices.Notices // nil without a receiver
	registry  *prometheus.Registry
	meters    *location.Meters
	ids       *protocol.RequestIDs
	forward   *routing.Forwarder
	outside   *outbound.Client
	api       *api.Server
	admin     *listen.Server

	server  *location.Server
	members *operator.Members
	// cloneHosts is asked for requests of clones.
	cloneHosts cloneHosts
}

// Open listens on the node's ports for peers and operators. Start must follow, and Close. The
// caller holds the lock of the data folder.
func Open(o Options) (_ *Node, err error) {
	c := o.Config
	n := &Node{
		o: o, id: c.ID, began: o.Clock.Mono(), peers: map[geo.NodeID]config.Peer{}, link: link.New(),
		shared: state.NewShared(int64(c.CacheBytes), filesMax), registry: metrics.NewRegistry(),
	}
	for _, p := range c.Peers {
		n.peers[p.ID] = p
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if err := membership.Claim(vfs.Default, c.Data, membership.Owner{Kind: membership.Process, Location: c.Location, Node: c.ID}); err != nil {
		return nil, err
	}
	var seed [40]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	n.ids = protocol.NewRequestIDs([32]byte(seed[:32]))
	if n.meters, err = location.NewMeters(n.registry, c.Location); err != nil {
		return nil, err
	}
	if err := metrics.RegisterCache(n.registry, n.shared.CacheBytes); err != nil {
		return nil, err
	}
	self := identity.Identity{Stamp: c.Stamp, Location: c.Location, Node: c.ID}
	files := identity.Files{CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key}
	if n.keyring, err = identity.OpenKeyring(self, files, o.Clock, o.Logger); err != nil {
		return nil, fmt.Errorf("certificates of the section tls: %w", err)
	}
	if err := metrics.RegisterCertificate(n.registry, n.keyring.NotAfter); err != nil {
		return nil, err
	}
	random := binary.LittleEndian.Uint64(seed[32:])
	if err := n.openTransport(random); err != nil {
		return nil, err
	}
	if err := n.openNotices(); err != nil {
		return nil, err
	}
	options := n.locationOptions(random)
	if err := options.Queues.Scale.Validate(); err != nil {
		return nil, fmt.Errorf("section queue_scale: %w", err)
	}
	n.location = location.New(options)
	if err := (location.Set{n.location}).RegisterGauges(n.registry, int(c.MetricsAccounts)); err != nil {
		return nil, err
	}
	n.join()
	n.api = n.newAPI()
	n.server = location.NewServer(location.ServerOptions{
		Location: n.location, Listeners: n.listeners, Ports: portsOf, Logger: o.Logger,
	})
	n.members = n.newMembers()
	token, err := admin.OpenTokenFile(c.Admin.TokenFile)
	if err != nil {
		return nil, err
	}
	handler := admin.Handler(n.backend(), n.registry, admin.Options{TokenFile: token, Listen: c.Listen.Admin, Hosts: c.Admin.Hosts, Log: o.Logger})
	listener := listen.Listener{Addr: c.Listen.Admin, Handler: handler, What: "admin", Limit: admin.Limit}
	n.admin, err = listen.Open([]listen.Listener{listener}, portsOf, o.Logger)
	return n, err
}

// Start opens the stores and runs the node. Reading large stores takes long: ctx ends Start
// after the current step.
func (n *Node) Start(ctx context.Context) error { return n.server.Start(ctx) }

// Waiting returns what the node waits for before it serves, "" once it serves: its own stores,
// then the other nodes of its location.
func (n *Node) Waiting(ctx context.Context) string { return n.location.Readiness(ctx).Reason }

// servingPoll is the time between two checks whether the node serves.
const servingPoll = 200 * time.Millisecond

// AwaitServing waits until the node serves. It fails if ctx ends first.
func (n *Node) AwaitServing(ctx context.Context) error {
	poll := time.NewTicker(servingPoll)
	defer poll.Stop()
	for n.Waiting(ctx) != "" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

func (n *Node) openTransport(seed uint64) error {
	c := n.o.Config
	listener, err := net.Listen("tcp", c.Listen.Node)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (listen.node): %w; %s", c.Listen.Node, err, listen.Remedy(err, "listen.node"))
	}
	addresses := map[geo.NodeID]string{}
	for id, p := range n.peers {
		addresses[id] = p.Address
	}
	n.transport, err = transport.Open(transport.Options{
		Self: c.ID, Keyring: n.keyring, Listener: listener, Peers: addresses, Clock: n.o.Clock, Seed: seed, Registerer: n.registry, Logger: n.o.Logger,
		Pair: transport.Pair{Location: c.Pair.Location, Addresses: c.Pair.Nodes},
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return nil
}

// nodes returns the numbers of all nodes of the stamp, in order.
func (n *Node) nodes() []geo.NodeID {
	all := []geo.NodeID{n.id}
	for id := range n.peers {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// sites returns the domains of all nodes of the stamp.
func (n *Node) sites() []ranges.Site {
	c := n.o.Config
	all := []ranges.Site{{Node: c.ID, Fault: c.FaultDomain, Upgrade: c.UpgradeDomain}}
	for _, p := range c.Peers {
		all = append(all, ranges.Site{Node: p.ID, Fault: p.FaultDomain, Upgrade: p.UpgradeDomain})
	}
	return all
}

// listeners returns the listeners of the node's front end.
func (n *Node) listeners() []listen.Listener {
	c := n.o.Config
	return append(listen.Services(c.Listen.Services().Of, c.Name, n.api), n.hopListener())
}

// Drain has the other nodes of the stamp take over what this one leads, and lets the requests under way end, within the
// time of the section drain. It returns what is left then. Close must follow.
func (n *Node) Drain() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), n.o.Config.Drain.Timeout.Duration())
	defer cancel()
	return n.server.Drain(ctx, n.o.Config.Drain.Notice.Duration())
}

// Close drains requests, stops the node and closes its ports.
func (n *Node) Close() error {
	var errs []error
	if n.server != nil {
		n.server.End()
		if n.server.Running() {
			errs = append(errs, n.server.Stop())
		}
	}
	if n.admin != nil {
		errs = append(errs, n.admin.Close())
	}
	n.link.Close()
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	if n.forward != nil {
		n.forward.Close()
		n.outside.Close()
	}
	if n.witness != nil {
		n.witness.HTTP.CloseIdleConnections()
	}
	if n.notices != nil {
		n.notices.Close()
	}
	n.shared.Close()
	return errors.Join(errs...)
}
