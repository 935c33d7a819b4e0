package stamp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/route"
)

// Stamp is one location's nodes as one process sees them: those that run here, all of
// them in antipode dev and one in a node process, and the others over the transport.
// Methods may be called concurrently.
type Stamp struct {
	o node.Options
	// each changes the options of a node before it is opened.
	each []func(o *node.Options)

	mu sync.RWMutex
	// nodes are those that run. down are those that failed: they are going to be opened again,
	// or stay out of service. So are those that a start did not open.
	nodes, down map[geo.NodeID]*running
	// onStart is called with every node before it runs, to connect its ranges; onStop before
	// it stops.
	onStart, onStop []func(*node.Node)

	// progress is nil once the stamp is closed: see ProgressNow. Guarded by progressMu.
	progressMu sync.Mutex
	progress   map[progressKey]*keptProgress

	// background counts the goroutines of Go. goMu is held while one is added and while ctx
	// ends, so that none is added after that.
	goMu       sync.Mutex
	background sync.WaitGroup
	ctx        context.Context //nolint:containedctx // Ends the goroutines of Go at Close.
	cancel     context.CancelFunc
}

// running is a node that was started, with its supervisor.
type running struct {
	// n is guarded by Stamp.mu. The supervisor, which alone replaces it, reads it without. It is nil if it was never opened.
	n *node.Node
	o node.Options
	// cancel ends the supervisor, which then closes done.
	cancel context.CancelFunc
	done   chan struct{}
	// failed is why the node is down. Guarded by Stamp.mu.
	failed error
	// gaveUp: the supervisor opens the node no more. Guarded by Stamp.mu.
	gaveUp bool
	// closed: n is closed. It belongs to the supervisor until done is closed.
	closed bool
}

// New returns a stamp of o.Peers without starting a node. o.ID is ignored; each node has its
// own folder in o.Dir, named by node.Name. The functions each change the options of a node
// before it is opened: for what the nodes of one process do not share, such as a test's disks.
func New(o node.Options, each ...func(o *node.Options)) *Stamp {
	if o.InSyncTimeout == 0 {
		o.InSyncTimeout = replica.InSyncTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Route == nil {
		o.Route = route.First()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Stamp{o: o, each: each, nodes: map[geo.NodeID]*running{}, down: map[geo.NodeID]*running{}, progress: map[progressKey]*keptProgress{}, ctx: ctx, cancel: cancel}
}

// Over returns a stamp of nodes that the caller opened and steps. Start and Stop must not be
// called for them.
func Over(o node.Options, nodes ...*node.Node) *Stamp {
	s := New(o)
	for _, n := range nodes {
		s.nodes[n.ID()] = &running{n: n}
	}
	return s
}

// Go runs f on a goroutine that Close ends and waits for; not at all once the stamp is closed.
func (s *Stamp) Go(f func(ctx context.Context)) {
	s.goMu.Lock()
	defer s.goMu.Unlock()
	if s.ctx.Err() != nil {
		return // The answer of another location may come while Close already waits.
	}
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		f(s.ctx)
	}()
}

// Location is where the stamp is.
func (s *Stamp) Location() geo.Location { return s.o.Location }

// Route implements ranges.Routed.
func (s *Stamp) Route() *route.Table { return s.o.Route }

// OnStart adds a function that is called with each node before it starts to run.
func (s *Stamp) OnStart(f func(*node.Node)) { s.onStart = append(s.onStart, f) }

// OnStop adds a function that is called with each node before it stops.
func (s *Stamp) OnStop(f func(*node.Node)) { s.onStop = append(s.onStop, f) }

// Start opens a node and runs it. It is an error if the node runs already.
func (s *Stamp) Start(id geo.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.down[id]; s.nodes[id] != nil || d != nil && !d.gaveUp {
		return fmt.Errorf("node %s runs already", node.Name(s.o.Location, id))
	}
	o := s.o
	o.ID = id
	o.Seed += uint64(id)
	o.Dir = filepath.Join(s.o.Dir, node.Name(s.o.Location, id))
	for _, f := range s.each {
		f(&o)
	}
	n, err := node.Open(o)
	if err == nil {
		err = s.meet(n)
	}
	if err != nil {
		s.unopened(id, err)
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	delete(s.down, id)
	r := &running{n: n, o: o.WithDefaults(), cancel: cancel, done: make(chan struct{})}
	s.serve(id, r)
	go func() {
		defer close(r.done)
		s.supervise(ctx, id, r)
	}()
	return nil
}

// meet compares the folder of a node with those of the nodes that run here, and closes the node if they are of another
// stamp. Those of other processes meet at the transport. The caller holds mu.
func (s *Stamp) meet(n *node.Node) error {
	for id, r := range s.nodes {
		err := n.Meet(id, r.n.Stamp())
		if err == nil {
			err = r.n.Meet(n.ID(), n.Stamp())
		}
		if err != nil {
			return errors.Join(err, n.Close(false))
		}
	}
	return nil
}

// serve lets an opened node answer calls and take requests. The caller holds mu.
func (s *Stamp) serve(id geo.NodeID, r *running) {
	if calls, ok := s.o.Transport.(node.CallTransport); ok {
		for method, f := range s.answers(id) {
			calls.Handle(id, method, f)
		}
	}
	for _, f := range s.onStart {
		f(r.n)
	}
	s.nodes[id] = r
}

// Stop ends a node. After a Stop with flush its next start replays nothing.
func (s *Stamp) Stop(id geo.NodeID, flush bool) error {
	s.mu.Lock()
	r, serves := s.nodes[id], true
	if r == nil {
		r, serves = s.down[id], false
	}
	delete(s.nodes, id)
	delete(s.down, id)
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("node %s does not run", node.Name(s.o.Location, id))
	}
	if serves {
		for _, f := range s.onStop {
			f(r.n)
		}
	}
	r.cancel()
	<-r.done
	if r.closed {
		return nil
	}
	return r.n.Close(flush)
}

// Close stops all nodes.
func (s *Stamp) Close() error {
	s.goMu.Lock()
	s.cancel()
	s.goMu.Unlock()
	s.progressMu.Lock()
	s.progress = nil
	s.progressMu.Unlock()
	s.background.Wait()
	var errs []error
	for _, id := range s.o.Peers {
		if s.Node(id) != nil || s.Down(id) != nil {
			errs = append(errs, s.Stop(id, true))
		}
	}
	return errors.Join(errs...)
}

// Node returns a node that runs here; nil if it is stopped or runs elsewhere.
func (s *Stamp) Node(id geo.NodeID) *node.Node {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.nodes[id]; r != nil {
		return r.n
	}
	return nil
}

// Nodes returns the ids of all configured nodes, wherever they run.
func (s *Stamp) Nodes() []geo.NodeID { return s.o.Peers }

// Placed returns the nodes on which a range was created.
func (s *Stamp) Placed(id geo.RangeID) []geo.NodeID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, in := range []map[geo.NodeID]*running{s.nodes, s.down} {
		for _, r := range in {
			if r.n != nil {
				return r.n.Placed(id)
			}
		}
	}
	return s.o.Peers
}

// Leader returns the leading replica of a range; nil while no node that runs here leads it.
func (s *Stamp) Leader(id geo.RangeID) *ranges.Range {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.o.Peers {
		if r := s.nodes[p]; r != nil {
			if rng := r.n.Range(id); rng != nil && rng.Leading() {
				return rng
			}
		}
	}
	return nil
}

// LeaderNode returns the node that leads a range, as far as the nodes that run in this process
// know; ok is false while they know none, and while the leader here steps down. It may be a former leader whose silence
// they have not noticed yet.
func (s *Stamp) LeaderNode(id geo.RangeID) (leader geo.NodeID, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.o.Peers {
		r := s.nodes[p]
		if r == nil {
			continue
		}
		if r.n.Range(id) == nil {
			if l := r.n.LeaderHint(id); leader == 0 {
				leader = l
			}
			continue
		}
		if r.n.Range(id).SteppingDown() {
			return 0, false
		}
		if r.n.Range(id).Leading() {
			return p, true
		}
		if l := r.n.Range(id).Leader(); l != 0 {
			leader = l
		}
	}
	return leader, leader != 0
}

// Replica returns a replica of a range that runs in this process and can be read: the leader
// if it runs here, otherwise one that knows a leader; nil while there is none. The applied
// state of the replica may be behind the leader's, never ahead of what is committed.
func (s *Stamp) Replica(id geo.RangeID) *ranges.Range {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found *ranges.Range
	for _, p := range s.o.Peers {
		if r := s.nodes[p]; r != nil {
			rng := r.n.Range(id)
			if rng != nil && rng.Leading() {
				return rng
			}
			if found == nil && rng != nil && rng.Leader() != 0 {
				found = rng
			}
		}
	}
	return found
}

// Read runs a query on a state that contains everything acknowledged before the call: the
// state of the leader if it runs here (see ranges.Range.Read), otherwise the state of a replica
// that runs here, after a round through the leader (R5). kv.ErrBusy: no leader answered for a
// while, or none is to be expected (see Leaderless).
func (s *Stamp) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	if r := s.Leader(id); r != nil { // Almost every read: it waits for nothing, so it needs no deadline.
		if held, err := r.ReadLeased(f); held {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	return s.withLeader(ctx, id, func() error {
		if r := s.Leader(id); r != nil {
			return r.Read(ctx, f)
		}
		if r := s.Replica(id); r != nil {
			return r.ReadFollowing(ctx, f)
		}
		return ranges.ErrNotLeader
	})
}
