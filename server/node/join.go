package node

import (
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"time"

	"antipode/directory"
	"antipode/failover/confirm"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/primary"
	"antipode/replication/bus"
	"antipode/replication/bus/natsbus"
	"antipode/replication/pair"
	"antipode/replication/payload"
	"antipode/secondary"
	"antipode/server/config"
	"antipode/server/location"
	"antipode/services/queues"
	stampnode "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
	"antipode/stamp/transport"
)

// busReplicas is how many servers of the location's NATS cluster store the stream.
const busReplicas = 3

// locationOptions configures a location of which this process runs one node.
func (n *Node) locationOptions(seed uint64) location.Options {
	c := n.o.Config
	commands := ranges.Commands{}
	catalog := func() *ranges.Range {
		stamp, err := n.location.Stamp()
		if err != nil {
			return nil
		}
		return stamp.Replica(n.location.Route().Catalog())
	}
	for _, from := range []ranges.Commands{ranges.OwnCommands(), primary.Commands(), directory.Commands(), secondary.Commands(catalog)} {
		maps.Copy(commands, from)
	}
	o := location.Options{
		Name: c.Location, Other: c.Pair.Location, Parity: parity(c.Location, c.Pair.Location), Nodes: n.nodes(), Local: []geo.NodeID{n.id}, Sites: n.sites(),
		Dir: c.Data, ReserveBytes: c.ReserveBytes, NameRest: c.NameRest.Duration(), Rehydration: c.Rehydration.Duration(), RPOTarget: c.RPOTarget.Duration(),
		Outbox:   location.OutboxBudget{Bytes: c.OutboxBytes, AccountBytes: c.OutboxAccountBytes, Age: c.OutboxAge.Duration()},
		CopyRate: c.BootstrapBytesPerSecond, Alone: func() bool { return c.Pair.Away == config.Accept },
		Queues: location.Queueing{Scale: queues.ScaleOptions{
			Max: int(c.QueueScale.Max), UpRate: float64(c.QueueScale.UpRate), WithinRange: c.QueueScale.WithinRange,
		}},
		Clock: n.o.Clock, State: state.Options{Shared: n.shared, Logger: n.o.Logger}, Seed: seed, Tick: n.o.Tick,
		Transport: func() stampnode.Transport { return n.transport }, Commands: commands,
		Link: n.link, Bus: n.bus(), Bounds: bus.Bounds{BytesMax: streamBytes}, Logger: n.o.Logger,
	}
	if n.notices != nil {
		o.Notify = n.notices.Send
	}
	if n.witness = n.witnessClient(); n.witness != nil {
		o.Witness, o.WitnessAddress = n.witness, c.Witness.Address
	}
	switch {
	case c.NATS.Mode == config.Outside:
		o.Replicas = int(c.NATS.Replicas)
	case c.NATS.Mode == config.Cluster && len(n.peers)+1 >= busReplicas:
		o.Replicas = busReplicas
	}
	o.Registerer = n.registry
	n.meters.Watch(&o)
	return o
}

// witnessClient returns a client of the witness, nil without one.
func (n *Node) witnessClient() *witness.Client {
	c := n.o.Config.Witness
	if c.Address == "" {
		return nil
	}
	return &witness.Client{
		URL: "https://" + c.Address, Clock: n.o.Clock,
		HTTP: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: n.keyring.PairConfig(c.Location), IdleConnTimeout: witnessIdle},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// witnessIdle is how long a connection to the witness is kept without a call: some renewals.
const witnessIdle = 30 * time.Second

// parity is the lowest tick bit of a location's timestamps. Both locations derive it from the
// two names, so that it differs between them (R6).
func parity(here, other geo.Location) geo.Timestamp {
	if here < other {
		return 0
	}
	return 1
}

// bus is where the incoming stream is.
func (n *Node) bus() location.Bus {
	c := n.o.Config
	if c.NATS.Mode == config.Outside {
		return location.Bus{Near: natsbus.ConnOptions{URLs: c.NATS.URLs, Credentials: c.NATS.Credentials}}
	}
	isPeer := func(id geo.NodeID) bool { return id == n.id || n.peers[id].ID != 0 }
	server := &natsbus.ServerOptions{
		Dir: filepath.Join(c.Data, string(c.Location), "nats"), Name: c.Name, Listen: c.NATS.Client, Bounds: bus.Bounds{BytesMax: streamBytes},
		TLS: n.keyring.ServerConfig(isPeer, c.Pair.Location), Log: n.o.Logger,
	}
	if c.NATS.Mode == config.Cluster {
		routes := n.keyring.ServerConfig(isPeer, "")
		routes.InsecureSkipVerify = true // VerifyConnection checks the identity, at both ends.
		server.Cluster = &natsbus.ClusterOptions{
			Name: string(c.Location), Listen: c.NATS.Listen, Routes: c.NATS.Routes, TLS: routes,
		}
	}
	return location.Bus{Server: server}
}

// farBus is where the outgoing stream is published.
func (n *Node) farBus() natsbus.ConnOptions {
	p := n.o.Config.Pair
	if p.OutsideNATS() {
		return natsbus.ConnOptions{URLs: p.NATS, Credentials: p.Credentials}
	}
	o := natsbus.ConnOptions{TLS: n.keyring.PairConfig(p.Location)}
	for _, address := range p.NATS {
		o.URLs = append(o.URLs, "tls://"+address)
	}
	return o
}

// pairCaller calls any node of the paired location that can answer.
type pairCaller struct{ t *transport.Transport }

// Call implements link.Caller.
func (c pairCaller) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	return c.t.CallPair(ctx, method, body)
}

// pairHandlers registers handlers of calls from the paired location.
type pairHandlers struct{ t *transport.Transport }

// Handle implements link.Handlers.
func (h pairHandlers) Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
	h.t.HandlePair(method, f)
}

// join connects the location with the other one: how to reach it, and handlers of its calls.
func (n *Node) join() {
	caller := pairCaller{n.transport}
	far := pair.NewRemote(caller)
	linked := pair.Through(n.link, far)
	n.location.SetFar(location.Far{
		Epochs:    confirm.Remote(n.link.Caller(caller)),
		Directory: directory.NewRemotePeer(n.link.Caller(caller)), Source: pair.NewSource(n.link, far, n.o.Clock),
		Pusher: payload.NewPusher(n.link, n.location, far, n.o.Clock), Received: linked.Received, Rest: linked.Rest, Verify: linked.Verify, Clock: linked.Clock,
		Bus: n.farBus(),
	})
	handlers := pairHandlers{n.transport}
	pair.Serve(handlers, n.link, pair.NewEnd(n.location, n.location.Shipper, n.elsewhere))
	directory.ServePeer(handlers, n.link, n.location.Directory, n.elsewhere)
	confirm.Serve(handlers, n.link, n.location.HigherEpochs)
}

// elsewhere returns the error that redirects a caller of the other location to the node that
// leads a range; nil if that is this node or is not known.
func (n *Node) elsewhere(r geo.RangeID) error {
	stamp, err := n.location.Stamp()
	if err != nil {
		return transport.Elsewhere(0)
	}
	if id, ok := stamp.LeaderNode(r); ok && id != n.id {
		return transport.Elsewhere(id)
	}
	return nil
}
