package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/durable"
	"antipode/stamp/extent"
	"antipode/stamp/fetch"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/scrub"
	"antipode/stamp/skew"
	"antipode/stamp/snapshot"
	"antipode/stamp/state"
)

// Node is one member of a stamp. Open starts nothing; Run, or calls of Pass from
// one goroutine, make it work.
type Node struct {
	// Folder knows the stamp that the data folder is of.
	*membership.Folder

	o         Options
	stores    stores
	placement placement
	// ranges are the ranges with a replica here, in order of their ids.
	ranges []*hostedRange
	byID   map[geo.RangeID]*hostedRange
	// hints are the leaders of the other ranges, as they reported themselves.
	hints membership.Hints
	rng   *rand.Rand // Open and scheduler only

	scheduler  scheduler
	snapshots  *snapshot.Manager
	fetcher    *fetch.Fetcher
	scrubber   *scrub.Scrubber
	quarantine quarantine
	noMetrics  func()
	// unnamings counts what may have left chunks without a name: see scrub.Node.
	unnamings atomic.Uint64
	room      *room.Watch
	clocks    skew.Exchange

	// ctx ends what start runs, and the range snapshots on their way.
	ctx    context.Context //nolint:containedctx // Ends at Close.
	cancel context.CancelFunc
	// background counts what start runs.
	background sync.WaitGroup
}

// Open opens the node's stores and replicas.
func Open(o Options) (_ *Node, err error) {
	o = o.WithDefaults()
	n := &Node{o: o, byID: map[geo.RangeID]*hostedRange{}, rng: rand.New(rand.NewPCG(o.Seed, uint64(o.ID)))}
	n.placement.o = &n.o
	n.stores = stores{o: &n.o, rng: n.rng, logs: map[geo.RangeID]state.RangeLog{}}
	n.hints.Timeout = time.Duration(o.ElectionTicks) * o.Tick
	n.scheduler = scheduler{
		n: n, inbox: inbox{wake: make(chan struct{}, 1)}, running: clock.NewRunning(o.Tick), times: times{n: n}, activeAt: map[geo.NodeID]uint64{},
	}
	n.scheduler.running.Advance(o.Clock.Mono())
	if !o.Stepped {
		n.o.State.Eased = n.Wake
	}
	n.clocks = n.newClocks()
	n.room = room.New(n.roomOptions())
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.cancel()
			n.scrubber.Close()
			err = errors.Join(fmt.Errorf("open node %s-%d: %w", o.Location, o.ID, err), n.stores.close())
		}
	}()
	fs := o.State.FS
	if n.Folder, err = membership.ClaimFolder(fs, o.Dir, o.Location, o.ID); err != nil {
		return nil, err
	}
	for _, sub := range []string{"log", "state", "extents", "snap", "replicas"} {
		if err := durable.MkdirAll(fs, fs.PathJoin(o.Dir, sub)); err != nil {
			return nil, err
		}
	}
	if err := o.Levels.CheckFolder(fs, o.Dir); err != nil {
		return nil, err
	}
	if err := n.placement.open(); err != nil {
		return nil, err
	}
	if err := n.stores.open(n.placement.has); err != nil {
		return nil, err
	}
	n.scheduler.marks = membership.OpenMarks(fs, o.Dir, n.o.Logger)
	n.fetcher = newFetcher(n)
	n.snapshots = n.newSnapshots()
	if err := n.openRanges(); err != nil {
		return nil, err
	}
	if err := n.room.FindAside(); err != nil {
		return nil, err
	}
	if err := o.Levels.KeepFolder(fs, o.Dir); err != nil {
		return nil, err
	}
	if n.scrubber, err = scrub.New(n.scrubOptions()); err != nil {
		return nil, err
	}
	if n.noMetrics, err = n.registerMetrics(o.registerer()); err != nil {
		return nil, err
	}
	o.Transport.Attach(o.ID, n)
	return n, nil
}

// openRanges opens every range that is here. A state store that opened may still be damaged in what
// the ranges load from it: it is then set aside as well.
func (n *Node) openRanges() error {
	err := n.tryRanges()
	if !pebble.IsCorruptionError(err) && !errors.Is(err, state.ErrDamaged) {
		return err
	}
	if err := n.stores.replaceState(errors.Join(err, n.stores.state.Close())); err != nil {
		return err
	}
	n.snapshots = n.newSnapshots()
	return n.tryRanges()
}

func (n *Node) tryRanges() error {
	n.ranges = nil
	for _, id := range n.placement.has {
		if err := n.openRange(id); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) openRange(id geo.RangeID) error {
	lost, err := n.snapshots.Recover(id, n.stores.logs[id])
	if err != nil {
		return err
	}
	onCommit := func(d time.Duration) {
		if n.o.OnCommit != nil {
			n.o.OnCommit(id, d)
		}
	}
	onApplied := func(a ranges.Applied) {
		if a.Changed && n.namesChunks(id) {
			n.unnamings.Add(1)
			n.byID[id].unnamed = a.Index
		}
		if n.o.OnApplied != nil {
			n.o.OnApplied(id, a)
		}
	}
	interval := time.Duration(0)
	if n.o.CloseInterval != nil {
		interval = n.o.CloseInterval(id)
	}
	r, err := ranges.New(ranges.Options{
		Location: n.o.Location, Range: id, Clock: n.o.Clock, Running: n.scheduler.running, Parity: n.o.Parity, State: n.stores.state, Nodes: n.placement.Of(id), Wake: n.Wake,
		Slow:          func(bytes int) time.Duration { return n.snapshots.Slow(id, bytes) },
		CloseInterval: interval, LeaseLength: time.Duration(n.o.ElectionTicks-3) * n.o.Tick, OnCommit: onCommit,
		CompareClock: n.clocks.Compare, TimesAhead: n.scheduler.times.ahead, Fence: n.o.Fence,
		OnTransfer: func(to geo.NodeID, reason string) {
			n.event(Event{Kind: LeaderTransferred, Range: id, Node: to, Reason: reason})
		},
		Levels: n.o.Levels, OnFloor: n.scheduler.inbox.fail, Understands: n.o.Understands, OnLater: func(reason string) {
			n.event(Event{Kind: LaterVersion, Range: id, Node: n.o.ID, Reason: reason})
		},
		HasChunk:  func(ref extent.Ref) bool { return n.stores.extents.Name(ref.ID) },
		OnApplied: onApplied,
	})
	if err != nil {
		return err
	}
	h := &hostedRange{n: n, Range: r, log: n.stores.logs[id], durable: map[geo.NodeID]membership.DurableIndex{}, unnamed: r.Machine.AppliedState().Index}
	n.ranges = append(n.ranges, h)
	n.byID[id] = h
	return h.open(lost)
}

// Name is a node's name for people: location-number.
func Name(l geo.Location, id geo.NodeID) string { return fmt.Sprintf("%s-%d", l, id) }

// Placed returns the nodes that a range was created on.
func (n *Node) Placed(id geo.RangeID) []geo.NodeID { return n.placement.Of(id) }

// ID is the node's id within its stamp.
func (n *Node) ID() geo.NodeID { return n.o.ID }

// Range returns a range with a replica here, nil for any other.
func (n *Node) Range(id geo.RangeID) *ranges.Range {
	if r := n.byID[id]; r != nil {
		return r.Range
	}
	return nil
}

// Extents is the node's chunk store.
func (n *Node) Extents() *extent.Store { return n.stores.extents }

// LogBytes estimates the size of a range's log on this node.
func (n *Node) LogBytes(id geo.RangeID) uint64 { return n.stores.logs[id].Bytes() }

// Failed returns why the node is out of service, nil while it serves.
func (n *Node) Failed() error { return n.scheduler.inbox.failure() }

// LeaderHint returns the leader of a range that is not here, 0 if none reported itself within the
// last election timeout, in running time. It may be called from any goroutine.
func (n *Node) LeaderHint(id geo.RangeID) geo.NodeID {
	return n.hints.Leader(id, n.scheduler.running.Time())
}

// Wake makes the scheduler do a pass soon. It may be called from any goroutine.
func (n *Node) Wake() { n.scheduler.inbox.awake() }

// Run does passes until ctx ends or the node fails, and scrubs beside them. The scrubber ends with
// ctx too, and Close waits for it.
func (n *Node) Run(ctx context.Context) error {
	n.start(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.ctx, cancel)()
		n.scrubber.Run(ctx)
	})
	return n.scheduler.run(ctx)
}

// Pass does one pass of the scheduler and reports whether there may be more work at once.
func (n *Node) Pass() (busy bool, err error) { return n.scheduler.pass() }

// start runs f apart from the scheduler; Close waits for it.
func (n *Node) start(f func()) {
	n.background.Add(1)
	n.o.Go(func() {
		defer n.background.Done()
		f()
	})
}

// fail takes the node out of service.
func (n *Node) fail(err error) {
	n.scheduler.inbox.fail(err)
	n.cancel()
	if reason := n.stores.state.Failed(); errors.Is(reason, state.ErrDamaged) {
		// The node stops anyway, so no service is lost by not opening this store again.
		n.quarantineStore("state", reason)
		if err := n.quarantine.Mark(n.o.State.FS, n.o.Dir); err != nil {
			n.o.Logger.Error("cannot mark the store as damaged; the next start finds it again", "error", err)
		}
	}
	n.o.Logger.Error("node out of service; nothing is retried on its store", "error", err)
	n.event(Event{Kind: StoreFailed, Node: n.o.ID, Reason: err.Error()})
	n.o.Transport.Attach(n.o.ID, nil)
	for _, r := range n.ranges {
		r.Stop()
	}
}

// State is the node's state store. After a Flush of it a crash replays only what follows.
func (n *Node) State() *state.Store { return n.stores.state }

// Close ends the node's part in the stamp and closes its stores. Run must have
// returned. With flush the state is made durable first, so that a restart replays
// nothing.
func (n *Node) Close(flush bool) error {
	n.o.Transport.Attach(n.o.ID, nil)
	n.scrubber.Close()
	n.noMetrics()
	n.fetcher.Close()
	n.cancel()
	n.snapshots.Close()
	n.background.Wait()
	n.scheduler.marks.Close()
	for _, r := range n.ranges {
		r.Stop()
	}
	var err error
	if flush {
		err = n.stores.state.Flush()
	}
	return errors.Join(err, n.stores.close())
}
