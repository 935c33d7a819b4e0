package location

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/replication/bus"
	"antipode/replication/bus/natsbus"
	"antipode/replication/link"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/replication/verify"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/skew"
	"antipode/stamp/state"
)

// closeInterval is after how long an idle range commits a closed record (R12).
const closeInterval = 250 * time.Millisecond

// Options configures a Location.
type Options struct {
	Name, Other geo.Location
	Parity      geo.Timestamp
	// Nodes are all nodes of the stamp; Local are those that run in this process.
	Nodes, Local []geo.NodeID
	// Sites: see node.Options.
	Sites []ranges.Site
	// Dir is the data folder. The location uses Dir/Name.
	Dir string
	// ReserveBytes: see node.Options.
	ReserveBytes uint64
	// Scans shares the processors among the scans of the process. Nil means a new one.
	Scans *services.Scans
	// NameRest is how long the name of a deleted table or container cannot be created
	// again. Zero means no time.
	NameRest time.Duration
	// Rehydration is how long an archived blob takes to get another tier. Zero means no time.
	Rehydration time.Duration
	// SweepEvery is the pause between two rounds of the sweep of deleted tables and containers. Zero means 10 s.
	SweepEvery time.Duration
	Queues     Queueing
	// RPOTarget is the age from which a change that the other location has not acknowledged is reported
	// as late. Zero means 15 min. A low one reports each short outage.
	RPOTarget time.Duration
	// Outbox bounds what waits for the other location (R18).
	Outbox OutboxBudget
	// CopyRate is the rate, in bytes per second, of bootstraps that are begun without one. Zero is no bound.
	CopyRate uint64
	Clock    clock.Clock
	State    state.Options
	// Transport returns the transport between the nodes, at each start.
	Transport func() node.Transport
	// Commands are the kinds of commands that other processes submit to a leader here. Nil
	// means none.
	Commands ranges.Commands
	Link     *link.Link
	// Bus is where the incoming stream is.
	Bus  Bus
	Seed uint64
	// Tick of the nodes; zero means 100 ms. Tests shorten it.
	Tick time.Duration
	// ScrubPeriod and CollectGrace: see node.Options. Registerer registers the nodes' metrics; may be nil.
	ScrubPeriod, CollectGrace time.Duration
	Registerer                prometheus.Registerer
	// Alone is the standing policy: whether to take writes of accounts that have a copy while the other location does
	// not answer (R21). It may be called from any goroutine. Nil means never.
	Alone func() bool
	// Witness has the lease of the location, and the claims of its promotions (R21). Nil means that there is none.
	Witness Witness
	// WitnessAddress names it for operators.
	WitnessAddress string
	// OnHigher gets the accounts that the other location has in a higher epoch. May be nil.
	OnHigher func(above map[geo.Account]geo.Epoch)
	// Bounds limit the incoming stream.
	Bounds bus.Bounds
	// Replicas is how many servers of the bus store the stream. Zero means 1.
	Replicas int
	Logger   *slog.Logger
	OnCommit func(geo.Service, time.Duration)
	// Route is the table of the ranges. Nil means that of a new stamp.
	Route *route.Table
	// OnAlarm is called for each alarm, with its reason. Nil drops alarms.
	OnAlarm func(reason string)
	// OnEvent is called with the kind of each event of the event log. May be nil.
	OnEvent func(kind node.EventKind)
	// Notify is called with each event of a failover. It must not wait. May be nil.
	Notify func(wire.Event)
	// OnHeld is called for each write that is refused or slowed because changes of its account are late. May be nil.
	OnHeld func(refused bool)
	// CloseInterval is after how long an idle range commits a closed record (R12).
	// Nil means 250 ms for every range.
	CloseInterval func(geo.RangeID) time.Duration
	// WrapPublisher and WrapSource let tests drive the replication by hand. Nil
	// changes nothing.
	WrapPublisher func(bus.Publisher) bus.Publisher
	WrapSource    func(receive.Source) receive.Source
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Scans == nil {
		o.Scans = services.NewScans(o.Clock)
	}
	if o.Route == nil {
		o.Route = route.First()
	}
	if o.RPOTarget == 0 {
		o.RPOTarget = rpoTarget
	}
	if o.OnCommit == nil {
		o.OnCommit = func(geo.Service, time.Duration) {}
	}
	if o.OnAlarm == nil {
		o.OnAlarm = func(string) {}
	}
	if o.Notify == nil {
		o.Notify = func(wire.Event) {}
	}
	if o.OnEvent == nil {
		o.OnEvent = func(node.EventKind) {}
	}
	if o.Alone == nil {
		o.Alone = func() bool { return false }
	}
	if o.OnHigher == nil {
		o.OnHigher = func(map[geo.Account]geo.Epoch) {}
	}
	if o.OnHeld == nil {
		o.OnHeld = func(bool) {}
	}
	if o.CloseInterval == nil {
		o.CloseInterval = func(geo.RangeID) time.Duration { return closeInterval }
	}
	if o.WrapPublisher == nil {
		o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return p }
	}
	if o.WrapSource == nil {
		o.WrapSource = func(s receive.Source) receive.Source { return s }
	}
	return o
}

// Far is how this location reaches the other one, over the link.
type Far struct {
	Directory directory.Peer
	Source    receive.Source
	Pusher    ship.PayloadPusher
	// Received is pair.End.Received of the other location.
	Received func(ctx context.Context, src geo.SourceRange) (geo.Timestamp, error)
	// Rest is pair.End.Rest of the other location.
	Rest func(ctx context.Context, r geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error)
	// Clock is pair.End.Clock of the other location.
	Clock func(ctx context.Context) (skew.Own, error)
	// Verify is pair.End.Verify of the other location.
	Verify func(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error)
	// Epochs asks the other location for higher epochs (R21).
	Epochs confirm.Ask
	// Bus is where this location publishes its stream.
	Bus natsbus.ConnOptions
}

// Location is one location: its stamp while it runs, and what serves on top of the stamp.
// Methods may be called concurrently.
type Location struct {
	o Options

	Directory *directory.Directory
	names     *directory.Names
	Primary   *primary.Primary

	far   Far
	from  *route.Table // the ranges of the other location
	stamp atomic.Pointer[stamp.Stamp]

	// bus is nil while the location is stopped. Not guarded by mu: the other location asks for it with a lock held.
	bus atomic.Pointer[openBus]

	// starting is the current step of Start, nil while Start does not run. startFailed is the
	// error of the last Start, nil after a success.
	starting    atomic.Pointer[string]
	startFailed atomic.Pointer[error]
	draining    atomic.Bool // see drain.go

	mu  sync.Mutex // held by Start, Stop and Disconnect; guards the field below
	pub *natsbus.Publisher

	events      events
	confirming  confirming
	withholding withholding
	receiving   receiving
	watching    watching
	looks       looking
	queueing    queueing
	verifying   *verifying
	clones      clones
	shipMu      sync.Mutex
	shippers    map[geo.NodeID]map[geo.RangeID]*shipping
}

// New returns a location that is not started. SetFar must follow.
func New(o Options) *Location {
	o = o.withDefaults()
	l := &Location{o: o, from: route.First(), shippers: map[geo.NodeID]map[geo.RangeID]*shipping{}, looks: looking{turn: make(chan struct{}, 1)}}
	l.receiving.l, l.confirming.l, l.verifying, l.withholding = l, l, newVerifying(l), withholding{l: l, of: map[geo.Account]lookup{}}
	l.clones.l = l
	l.watching.l, l.watching.unavailable = l, newEpisodes(ServiceUnavailable, ServiceLive)
	l.watching.late = newEpisodes(ChangesLate, ChangesArrived)
	l.watching.fellOut = newEpisodes(AccountFellOut, AccountFollows)
	l.watching.speeds.keep, l.watching.copies.keep = syncSamples, copySamples
	l.events.location, l.events.clock = o.Name, o.Clock
	l.Directory = directory.NewDirectory(l, o.Other)
	l.names = directory.NewNames(l.Directory, o.Seed^uint64(o.Clock.Now().UnixNano()))
	l.Primary = primary.New(l)
	l.Primary.Await = l.confirming.await
	l.queueing = newQueueing(l)
	l.Directory.SetImages(l.Primary)
	l.Directory.OnMove(l.reportMove)
	l.Directory.Promoter().SetHeldBack(func(a *catalog.Account) bool {
		return slices.ContainsFunc(geo.Services[:], func(s geo.Service) bool { return l.waitsForClock(a, s) })
	})
	l.Directory.SetPace(o.Clock, o.CopyRate)
	if o.Witness != nil {
		l.Directory.Promoter().SetClaims(claims{o.Witness})
	}
	return l
}

// SetFar sets how the other location is reached. It is called before Start.
func (l *Location) SetFar(f Far) {
	l.far = f
	l.Directory.SetPeer(f.Directory)
	l.Directory.Copier().SetFarRows(&verify.Remote{Call: f.Verify})
	if f.Received != nil {
		l.Directory.Mover().SetReceived(func(ctx context.Context, r geo.RangeID) (geo.Timestamp, error) {
			return f.Received(ctx, geo.SourceRange{Origin: l.o.Name, Range: r})
		})
	}
}

// Start opens and runs the location. Missing data folders are made. Reading large stores takes
// long: ctx ends Start after the current step, which Readiness shows.
func (l *Location) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bus.Load() != nil {
		return fmt.Errorf("%s %w", l.Subject(), ErrRuns)
	}
	defer l.starting.Store(nil)
	failed := l.start(ctx)
	if failed == nil {
		l.startFailed.Store(nil)
		return nil
	}
	l.startFailed.Store(&failed)
	if l.bus.Load() != nil {
		return errors.Join(failed, l.stop())
	}
	return failed
}

func (l *Location) start(ctx context.Context) error {
	l.step("its bus starts")
	b, err := l.startBus(ctx)
	if err != nil {
		return fmt.Errorf("start the bus of %s: %w", l.o.Name, err)
	}
	l.bus.Store(b)
	if err := l.connect(b); err != nil {
		return err
	}
	return l.startStamp(ctx)
}

// step records the current step of Start.
func (l *Location) step(what string) { l.starting.Store(&what) }

func (l *Location) startStamp(ctx context.Context) error {
	var s *stamp.Stamp
	s = stamp.New(node.Options{
		AskFarClock: func(done func(skew.Own, error)) {
			s.Go(func(ctx context.Context) { done(l.farClock(ctx)) })
		},
		Location: l.o.Name, Peers: l.o.Nodes, Route: l.o.Route, Sites: l.o.Sites, Dir: filepath.Join(l.o.Dir, string(l.o.Name)), State: l.o.State, Clock: l.o.Clock,
		Transport: l.o.Transport(), Seed: l.o.Seed, Parity: l.o.Parity, Tick: l.o.Tick, Logger: l.o.Logger,
		ScrubPeriod: l.o.ScrubPeriod, CollectGrace: l.o.CollectGrace, Registerer: l.o.Registerer, ReserveBytes: l.o.ReserveBytes,
		CloseInterval: l.o.CloseInterval, OnCommit: l.committed, RowChunks: blobs.RowChunks, ChunkSpans: blobs.ChunkSpans, Commands: l.o.Commands,
		Fence: l.confirming.begin(),
		OnEvent: func(e node.Event) {
			l.clones.note(e)
			l.events.add(e)
			l.o.OnEvent(e.Kind)
		},
	})
	f := l.receiving.following(s)
	s.OnStop(l.verifying.end)
	l.clones.start(s)
	for _, id := range l.o.Local {
		l.step("node " + node.Name(l.o.Name, id) + " opens its stores and replays its log")
		if err := startNode(ctx, s, id); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	l.stamp.Store(s)
	l.confirming.start(s)
	l.receiving.start(s, f)
	l.watching.start()
	return nil
}

// Route returns the table of the location's ranges.
func (l *Location) Route() *route.Table { return l.o.Route }

// Whole reports whether this process runs all nodes of the stamp.
func (l *Location) Whole() bool { return slices.Equal(l.o.Nodes, l.o.Local) }

// Stop drains and ends the location. Stores are flushed, so that a restart replays nothing.
func (l *Location) Stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bus.Load() == nil {
		return fmt.Errorf("location %s is stopped", l.o.Name)
	}
	return l.stop()
}

func (l *Location) stop() error {
	var errs []error
	l.watching.stop()
	l.receiving.stop()
	l.confirming.stop()
	if s := l.stamp.Swap(nil); s != nil {
		errs = append(errs, s.Close())
	}
	errs = append(errs, l.disconnect(), l.bus.Swap(nil).close())
	return errors.Join(errs...)
}
