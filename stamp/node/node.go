package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/durable"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/scrub"
	"antipode/stamp/snapshot"
	"antipode/stamp/state"
)

// inboxMax and inboxBytesMax bound the messages that wait for the scheduler. Raft sends
// again what is dropped beyond them.
const (
	inboxMax      = 8192
	inboxBytesMax = 64 << 20
)

// Node is one member of a stamp. Open starts nothing; Run, or calls of Pass from
// one goroutine, make it work.
type Node struct {
	o       Options
	log     state.Log
	state   *state.Store
	extents *extent.Store
	ranges  []*ranges.Range
	// placement says which nodes have which ranges; has are those of this one.
	placement ranges.Placement
	has       []geo.RangeID
	logs      map[geo.RangeID]state.RangeLog
	byID      map[geo.RangeID]*ranges.Range

	wake chan struct{}
	told told
	// running is the running time of the scheduler, which advances it in each pass.
	running *clock.Running

	mu     sync.Mutex
	inbox  []Envelope
	failed error
	// inboxBytes is about what inbox holds.
	inboxBytes int64
	closed     bool
	orders     []order     // see onScheduler
	full       atomic.Bool // see checkRoom
	// fetching are the chunks that are fetched for entries that wait; true says that it
	// failed.
	fetching map[extent.ChunkID]bool
	// noStore is why a fetch could not be written here.
	noStore error
	// durable[r][n] is the durable applied index of range r on node n.
	durable map[geo.RangeID]map[geo.NodeID]uint64
	// condemned are the damaged stores, by folder: see condemn. settled: see settle;
	// unsettled counts the ticks in which it was not.
	condemned map[string]error
	settled   bool
	unsettled uint64

	// scheduler only
	nextTick time.Duration
	ticks    uint64
	pass     replica.Pass
	held     map[geo.RangeID][]Envelope
	flushing <-chan struct{}
	flushed  map[geo.RangeID]uint64
	rng      *rand.Rand
	// identities of the replicas here; reported are the lost replicas that peers told of;
	// claims are the nodes that spoke for replicas which the configuration here does not
	// name yet (see senders.go); seen are the newest members.
	identities map[geo.RangeID]*identity
	reported   map[geo.RangeID]map[geo.NodeID]geo.ReplicaID
	claims     map[geo.RangeID]map[geo.ReplicaID]geo.NodeID
	refused    map[refusedSender]bool // see refuse
	seen       map[geo.RangeID]replica.Members
	led        map[geo.RangeID]bool // as of the last look: see noteLeader
	// differ are the nodes with another placement, told to the operator.
	differ map[geo.NodeID]bool
	// heardAt is the tick at which a peer last told a durable index.
	heardAt map[geo.NodeID]uint64

	snapshots *snapshot.Manager
	scrubber  *scrub.Scrubber
	metrics   *metrics

	// ctx ends the node's own goroutines and the snapshots that others send it;
	// background counts both.
	ctx        context.Context //nolint:containedctx // Ends at Close.
	cancel     context.CancelFunc
	background sync.WaitGroup
}

// Open opens the node's stores and replicas.
func Open(o Options) (_ *Node, err error) {
	o = o.WithDefaults()
	if o.Engine.FS == nil {
		o.Engine.FS = vfs.Default
	}
	n := &Node{
		o: o, wake: make(chan struct{}, 1), running: clock.NewRunning(o.Tick), byID: map[geo.RangeID]*ranges.Range{}, logs: map[geo.RangeID]state.RangeLog{},
		durable: map[geo.RangeID]map[geo.NodeID]uint64{}, held: map[geo.RangeID][]Envelope{},
		flushed: map[geo.RangeID]uint64{}, fetching: map[extent.ChunkID]bool{},
		identities: map[geo.RangeID]*identity{}, reported: map[geo.RangeID]map[geo.NodeID]geo.ReplicaID{},
		claims: map[geo.RangeID]map[geo.ReplicaID]geo.NodeID{}, refused: map[refusedSender]bool{}, seen: map[geo.RangeID]replica.Members{}, led: map[geo.RangeID]bool{},
		condemned: map[string]error{}, heardAt: map[geo.NodeID]uint64{}, differ: map[geo.NodeID]bool{},
		rng: rand.New(rand.NewPCG(o.Seed, uint64(o.ID))),
	}
	n.running.Advance(o.Clock.Mono())
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.cancel()
			n.scrubber.Close()
			err = errors.Join(fmt.Errorf("open node %s-%d: %w", o.Location, o.ID, err), n.closeStores())
		}
	}()
	fs := o.Engine.FS
	for _, sub := range []string{"log", "state", "extents", "snap", "replicas"} {
		if err := durable.MkdirAll(fs, fs.PathJoin(o.Dir, sub)); err != nil {
			return nil, err
		}
	}
	if err := n.openPlacement(); err != nil {
		return nil, err
	}
	if err := n.openState(); err != nil {
		return nil, err
	}
	if n.extents, err = extent.Open(fs, fs.PathJoin(o.Dir, "extents"), extent.Options{Rand: n.newSource(), Registerer: n.registerer()}); err != nil {
		return nil, err
	}
	if err := n.openLogs(); err != nil {
		return nil, err
	}
	n.snapshots = newSnapshots(n)
	if err := n.openRanges(); err != nil {
		return nil, err
	}
	if n.scrubber, err = scrub.New(n.scrubOptions()); err != nil {
		return nil, err
	}
	if n.metrics, err = newMetrics(n); err != nil {
		return nil, err
	}
	o.Transport.Attach(o.ID, n)
	return n, nil
}

// newSource returns random bytes for one user: the scheduler, the log and the extents
// draw concurrently.
func (n *Node) newSource() io.Reader {
	return randReader{rand.New(rand.NewPCG(n.rng.Uint64(), uint64(n.o.ID)))}
}

type randReader struct{ r *rand.Rand }

func (r randReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.r.Uint32())
	}
	return len(p), nil
}

// takesSnapshots reports whether the node sends and takes range snapshots.
func (n *Node) takesSnapshots() bool {
	_, ok := n.o.Transport.(SnapshotTransport)
	return ok && n.o.RowChunks != nil
}

// Name is a node's name for people: location-number.
func Name(l geo.Location, id geo.NodeID) string { return fmt.Sprintf("%s-%d", l, id) }

// Placed returns the nodes that a range was made on.
func (n *Node) Placed(id geo.RangeID) []geo.NodeID { return n.placement.Of(id) }

// ID is the node's id within its stamp.
func (n *Node) ID() geo.NodeID { return n.o.ID }

// Range returns one of the node's ranges, nil where it has none of that id.
func (n *Node) Range(id geo.RangeID) *ranges.Range { return n.byID[id] }

// Extents is the node's chunk store.
func (n *Node) Extents() *extent.Store { return n.extents }

// LogBytes is roughly what the log of a range takes on this node.
func (n *Node) LogBytes(id geo.RangeID) uint64 { return n.logs[id].Bytes() }

// Failed returns why the node is out of service, nil while it serves.
func (n *Node) Failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

// Wake makes the scheduler do a pass soon. It may be called from any goroutine.
func (n *Node) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Receive takes messages of peers. It may be called from any goroutine.
func (n *Node) Receive(batch []Envelope) {
	n.mu.Lock()
	for _, e := range batch {
		size := e.Bytes()
		// A message above the bound passes alone.
		if len(n.inbox) >= inboxMax || n.inboxBytes > 0 && n.inboxBytes+size > inboxBytesMax {
			break
		}
		n.inbox = append(n.inbox, e)
		n.inboxBytes += size
	}
	n.mu.Unlock()
	n.Wake()
}

// start runs f apart from the scheduler; Close waits for it.
func (n *Node) start(f func()) {
	n.background.Add(1)
	n.o.Go(func() {
		defer n.background.Done()
		f()
	})
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	if n.failed == nil {
		n.failed = err
	}
	n.mu.Unlock()
	n.cancel()
	if reason := n.state.Failed(); errors.Is(reason, state.ErrDamaged) {
		// It goes on no more, so nothing is lost by not opening it again.
		n.condemn("state", reason)
		if err := n.markCondemned(); err != nil {
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

// Flush makes the applied state durable and waits for it: a crash after it replays
// only what follows.
func (n *Node) Flush() error { return n.state.Flush() }

// Close ends the node's part in the stamp and closes its stores. Run must have
// returned. With flush the state is made durable first, so that a restart replays
// nothing.
func (n *Node) Close(flush bool) error {
	n.o.Transport.Attach(n.o.ID, nil)
	n.scrubber.Close()
	n.metrics.unregister()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel()
	n.snapshots.Close()
	n.background.Wait()
	for _, r := range n.ranges {
		r.Stop()
	}
	var err error
	if flush {
		err = n.state.Flush()
	}
	return errors.Join(err, n.closeStores())
}

func (n *Node) closeStores() error {
	var errs []error
	if n.extents != nil {
		errs = append(errs, n.extents.Close())
	}
	if n.state != nil {
		errs = append(errs, n.state.Close())
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	return errors.Join(errs...)
}
