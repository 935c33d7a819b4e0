package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"antipode/failover"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/replication/link"
	"antipode/replication/natsstream"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/replication/stream"
	"antipode/secondary"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/engine"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// nodesPerLocation is how many nodes a stamp has: three replicas of everything.
const nodesPerLocation = 3

// closeInterval is after how long an idle range commits a closed record (R12).
const closeInterval = 250 * time.Millisecond

// silenceAfter is how long a source range may say nothing before an alarm.
const silenceAfter = 5 * time.Second

// LocationOptions configures a Location.
type LocationOptions struct {
	Name, Other geo.Location
	Parity      geo.Timestamp
	// Dir is the folder of all locations; this one uses Dir/Name.
	Dir    string
	Clock  clock.Clock
	Engine engine.Options
	Link   *link.Link
	Seed   uint64
	// Tick of the nodes; zero means 100 ms. Tests shorten it.
	Tick time.Duration
	// Bounds of the stream in this location's carrier.
	Bounds   stream.Bounds
	Logger   *slog.Logger
	OnCommit func(geo.RangeID, time.Duration)
	// OnAlarm takes named alarms.
	OnAlarm func(reason string)
	// CloseInterval is after how long an idle range commits a closed record (R12).
	// Nil means 250 ms for every range.
	CloseInterval func(geo.RangeID) time.Duration
	// WrapPublisher and WrapSource let tests drive the replication by hand. Nil
	// changes nothing.
	WrapPublisher func(stream.Publisher) stream.Publisher
	WrapSource    func(receive.Source) receive.Source
}

func (o LocationOptions) withDefaults() LocationOptions {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnAlarm == nil {
		o.OnAlarm = func(string) {}
	}
	if o.CloseInterval == nil {
		o.CloseInterval = func(geo.RangeID) time.Duration { return closeInterval }
	}
	if o.WrapPublisher == nil {
		o.WrapPublisher = func(p stream.Publisher) stream.Publisher { return p }
	}
	if o.WrapSource == nil {
		o.WrapSource = func(s receive.Source) receive.Source { return s }
	}
	return o
}

// Location is one location: its stamp while it runs, and what serves on top of it.
// Methods may be called concurrently.
type Location struct {
	o LocationOptions

	Directory *failover.Directory
	Primary   *primary.Primary
	// peer is the other location.
	peer *Location

	stamp    atomic.Pointer[node.Stamp]
	receiver atomic.Pointer[receive.Receiver]

	mu       sync.Mutex // guards start and stop, and the fields below
	server   *natsstream.Server
	conn     *natsstream.Conn // to the carrier here
	peerConn *natsstream.Conn // to the carrier of the other location
	pub      *natsstream.Publisher
	consumer *natsstream.Consumer
	cancel   context.CancelFunc
	running  sync.WaitGroup

	shipMu   sync.Mutex
	shippers map[geo.NodeID]map[geo.RangeID]*shipping
}

// shipping is a shipper that runs.
type shipping struct {
	*ship.Shipper
	cancel context.CancelFunc
	done   chan struct{}
}

// NewLocation returns a location that is not started.
func NewLocation(o LocationOptions) *Location {
	o = o.withDefaults()
	l := &Location{o: o, shippers: map[geo.NodeID]map[geo.RangeID]*shipping{}}
	l.Directory = failover.NewDirectory(l, o.Other)
	l.Primary = primary.New(l)
	return l
}

// Pair tells two locations of each other, before they start.
func Pair(a, b *Location) {
	a.peer, b.peer = b, a
	a.Directory.SetPeer(linkedDirectory{a.o.Link, b})
	b.Directory.SetPeer(linkedDirectory{b.o.Link, a})
}

// linkedDirectory is the directory of the other location, over the link.
type linkedDirectory struct {
	l   *link.Link
	far *Location
}

// Reserve implements failover.Peer.
func (d linkedDirectory) Reserve(ctx context.Context, a catalog.Account) error {
	if err := d.l.Pass(ctx); err != nil {
		return err
	}
	return d.far.Directory.Reserve(ctx, a)
}

// errStopped: the location does not run.
var errStopped = storageerr.ServerBusy.Saying("The location is stopped. Please retry your request.")

// Location implements failover.Stamp and link.Stamp.
func (l *Location) Location() geo.Location { return l.o.Name }

// Stamp returns the stamp while the location runs, else nil.
func (l *Location) Stamp() *node.Stamp { return l.stamp.Load() }

// Submit implements primary.Stamp.
func (l *Location) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	if s := l.stamp.Load(); s != nil {
		return s.Submit(ctx, r, cmd)
	}
	return errStopped
}

// Read runs a query on the leader of a range.
func (l *Location) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if s := l.stamp.Load(); s != nil {
		return s.Read(ctx, r, f)
	}
	return errStopped
}

// Leader returns a range as its leader holds it, nil while there is none.
func (l *Location) Leader(r geo.RangeID) *ranges.Range {
	if s := l.stamp.Load(); s != nil {
		return s.Leader(r)
	}
	return nil
}

// PutChunk makes a chunk durable on the nodes that are up.
func (l *Location) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	if s := l.stamp.Load(); s != nil {
		return s.PutChunk(ctx, ref, data)
	}
	return errStopped
}

// ReadChunk reads from any node that holds the chunk intact.
func (l *Location) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	if s := l.stamp.Load(); s != nil {
		return s.ReadChunk(ref, off, p)
	}
	return 0, errStopped
}

// HasChunk reports whether a chunk is durable where records that name it are
// committed.
func (l *Location) HasChunk(ref extent.Ref) bool {
	s := l.stamp.Load()
	return s != nil && s.HasChunk(ref)
}

// Go runs f on a goroutine of the stamp; not at all where the location is stopped.
func (l *Location) Go(f func(ctx context.Context)) {
	if s := l.stamp.Load(); s != nil {
		s.Go(f)
	}
}

// InProcessConn implements natsstream.Dialer: the carrier of this location.
func (l *Location) InProcessConn() (net.Conn, error) {
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	if server == nil {
		return nil, errStopped
	}
	return server.InProcessConn()
}

// Start opens and runs the location. Its data folders are made if missing.
func (l *Location) Start() (err error) {
	l.mu.Lock()
	if l.server != nil {
		l.mu.Unlock()
		return fmt.Errorf("location %s runs already", l.o.Name)
	}
	l.server, err = natsstream.OpenServer(natsstream.ServerOptions{
		Dir: filepath.Join(l.o.Dir, string(l.o.Name), "nats"), Name: string(l.o.Name), Bounds: l.o.Bounds, Log: l.o.Logger,
	})
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("start the carrier of %s: %w", l.o.Name, err)
	}
	if err = l.connect(); err == nil {
		err = l.startStamp()
	}
	if err != nil {
		return errors.Join(err, l.Stop())
	}
	return nil
}

// connect opens the ends of the stream: the consumer here, the publisher there.
func (l *Location) connect() (err error) {
	from := natsstream.Options{Source: l.o.Other, Bounds: l.o.Bounds, Log: l.o.Logger}
	to := natsstream.Options{Source: l.o.Name, Bounds: l.o.Bounds, Log: l.o.Logger}
	if l.conn, err = natsstream.Connect(natsstream.ConnOptions{Server: l, Name: string(l.o.Name), Log: l.o.Logger}); err != nil {
		return err
	}
	if l.consumer, err = natsstream.OpenConsumer(l.conn, from); err != nil {
		return err
	}
	far := natsstream.ConnOptions{Server: linkedCarrier{l.o.Link, l.peer}, Name: string(l.o.Name), Log: l.o.Logger}
	if l.peerConn, err = natsstream.Connect(far); err != nil {
		return err
	}
	l.pub, err = natsstream.OpenPublisher(l.peerConn, to)
	return err
}

// linkedCarrier reaches the carrier of the other location over the link.
type linkedCarrier struct {
	l   *link.Link
	far *Location
}

// InProcessConn implements natsstream.Dialer.
func (c linkedCarrier) InProcessConn() (net.Conn, error) {
	conn, err := c.far.InProcessConn()
	if err != nil {
		return nil, err
	}
	return c.l.Over(conn)
}

func (l *Location) startStamp() error {
	peers := make([]geo.NodeID, nodesPerLocation)
	for i := range peers {
		peers[i] = geo.NodeID(i + 1)
	}
	s := node.NewStamp(node.Options{
		Location: l.o.Name, Peers: peers, Dir: filepath.Join(l.o.Dir, string(l.o.Name)), Engine: l.o.Engine, Clock: l.o.Clock,
		Transport: node.NewMemory(), Seed: l.o.Seed, Parity: l.o.Parity, Tick: l.o.Tick, Logger: l.o.Logger,
		CloseInterval: l.o.CloseInterval, OnCommit: l.o.OnCommit, RowChunks: blobs.RowChunks,
	})
	s.OnStart(l.ship)
	s.OnStop(l.unship)
	for _, id := range peers {
		if err := s.Start(id); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	l.stamp.Store(s)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	receiver := receive.New(receive.Options{
		Origin: l.o.Other, Ranges: []geo.RangeID{1, 2, 3, 4}, Consumer: l.consumer,
		Source:  l.o.WrapSource(link.NewSource(l.o.Link, l.peer, l.peer.shipper)),
		Applier: secondary.NewApplier(l), Clock: l.o.Clock, SilenceAfter: silenceAfter, Logger: l.o.Logger, Alarm: l.o.OnAlarm,
		Incarnation: l.knownIncarnation(), OnIncarnation: l.rememberIncarnation,
	})
	l.receiver.Store(receiver)
	l.running.Go(func() { _ = receiver.Run(ctx) }) // Run ends with ctx alone.
	return nil
}

// ship starts the shippers of a node's ranges.
func (l *Location) ship(n *node.Node) {
	set := map[geo.RangeID]*shipping{}
	for _, id := range []geo.RangeID{1, 2, 3, 4} {
		sh := ship.New(ship.Options{
			Location: l.o.Name, Range: n.Range(id), Publisher: l.o.WrapPublisher(l.o.Link.Publisher(l.pub)),
			Pusher: link.NewPusher(l.o.Link, l, l.peer), Clock: l.o.Clock, Logger: l.o.Logger, Alarm: l.o.OnAlarm,
		})
		ctx, cancel := context.WithCancel(context.Background())
		s := &shipping{sh, cancel, make(chan struct{})}
		go func() {
			defer close(s.done)
			_ = sh.Run(ctx) // Run ends with ctx alone.
		}()
		set[id] = s
	}
	l.shipMu.Lock()
	defer l.shipMu.Unlock()
	l.shippers[n.ID()] = set
}

// unship stops the shippers of a node.
func (l *Location) unship(n *node.Node) {
	l.shipMu.Lock()
	set := l.shippers[n.ID()]
	delete(l.shippers, n.ID())
	l.shipMu.Unlock()
	for _, s := range set {
		s.cancel()
		<-s.done
	}
}

// shipper finds the shipper of a range at the node that leads it.
func (l *Location) shipper(id geo.RangeID) *ship.Shipper {
	r := l.Leader(id)
	l.shipMu.Lock()
	defer l.shipMu.Unlock()
	for nid, set := range l.shippers {
		if s := l.stamp.Load(); s != nil {
			if n := s.Node(nid); n != nil && n.Range(id) == r {
				return set[id].Shipper
			}
		}
	}
	return nil
}

// Stop drains and ends the location: what is committed stays on disk, and its
// restart replays nothing.
func (l *Location) Stop() error {
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	if server == nil {
		return fmt.Errorf("location %s is stopped", l.o.Name)
	}
	var errs []error
	l.stopReceiver()
	if s := l.stamp.Swap(nil); s != nil {
		errs = append(errs, s.Close())
	}
	errs = append(errs, l.Disconnect())
	l.mu.Lock()
	l.server = nil
	l.mu.Unlock()
	return errors.Join(append(errs, server.Close())...)
}

// stopReceiver ends what takes the other location's stream.
func (l *Location) stopReceiver() {
	if l.cancel != nil {
		l.cancel()
		l.running.Wait()
		l.cancel = nil
	}
}

// Disconnect ends the location's part in both streams: it takes and sends no more
// records until its next Start. A process that ends disconnects both locations before
// it stops either, or each would miss the other's carrier and say so.
func (l *Location) Disconnect() error {
	l.stopReceiver()
	var errs []error
	if l.consumer != nil {
		errs = append(errs, l.consumer.Close())
	}
	if l.pub != nil {
		errs = append(errs, l.pub.Close())
	}
	for _, c := range []*natsstream.Conn{l.peerConn, l.conn} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	l.consumer, l.pub, l.peerConn, l.conn = nil, nil, nil, nil
	return errors.Join(errs...)
}
