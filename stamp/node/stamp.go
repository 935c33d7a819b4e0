package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Stamp is one location's nodes in one process. Methods may be called concurrently.
type Stamp struct {
	o Options

	mu    sync.RWMutex
	nodes map[geo.NodeID]*running
	// onStart is told of every node that started, to hook its ranges up; onStop
	// before it stops.
	onStart, onStop []func(*Node)
	// background are goroutines of Go.
	background sync.WaitGroup
	ctx        context.Context //nolint:containedctx // Ends the goroutines of Go at Close.
	cancel     context.CancelFunc
}

type running struct {
	n      *Node
	cancel context.CancelFunc
	done   chan struct{}
}

// NewStamp returns a stamp of o.Peers without starting a node. o.ID and o.Dir are
// ignored: node i lives in dir(i).
func NewStamp(o Options) *Stamp {
	ctx, cancel := context.WithCancel(context.Background())
	return &Stamp{o: o, nodes: map[geo.NodeID]*running{}, ctx: ctx, cancel: cancel}
}

// Go runs f on a goroutine that Close ends and waits for.
func (s *Stamp) Go(f func(ctx context.Context)) {
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		f(s.ctx)
	}()
}

// Location is where the stamp is.
func (s *Stamp) Location() geo.Location { return s.o.Location }

// Name is a node's name for people: location-number.
func Name(l geo.Location, id geo.NodeID) string { return fmt.Sprintf("%s-%d", l, id) }

// OnStart sets what is called with each node before it starts to run.
func (s *Stamp) OnStart(f func(*Node)) { s.onStart = append(s.onStart, f) }

// OnStop sets what is called with each node before it stops.
func (s *Stamp) OnStop(f func(*Node)) { s.onStop = append(s.onStop, f) }

// Start opens a node and runs it; an error where it runs already.
func (s *Stamp) Start(id geo.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[id] != nil {
		return fmt.Errorf("node %s runs already", Name(s.o.Location, id))
	}
	o := s.o
	o.ID = id
	o.Seed += uint64(id)
	o.Dir = filepath.Join(s.o.Dir, Name(s.o.Location, id))
	n, err := Open(o)
	if err != nil {
		return err
	}
	for _, f := range s.onStart {
		f(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{n: n, cancel: cancel, done: make(chan struct{})}
	s.nodes[id] = r
	go func() {
		defer close(r.done)
		_ = n.Run(ctx) // A failed node said so and stays out of service until restarted.
	}()
	return nil
}

// Stop ends a node. With flush its next start replays nothing.
func (s *Stamp) Stop(id geo.NodeID, flush bool) error {
	s.mu.Lock()
	r := s.nodes[id]
	delete(s.nodes, id)
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("node %s does not run", Name(s.o.Location, id))
	}
	for _, f := range s.onStop {
		f(r.n)
	}
	r.cancel()
	<-r.done
	return r.n.Close(flush)
}

// Close stops all nodes.
func (s *Stamp) Close() error {
	s.cancel()
	s.background.Wait()
	var errs []error
	for _, id := range s.o.Peers {
		if s.Node(id) != nil {
			errs = append(errs, s.Stop(id, true))
		}
	}
	return errors.Join(errs...)
}

// Node returns a running node, nil where it is stopped.
func (s *Stamp) Node(id geo.NodeID) *Node {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.nodes[id]; r != nil {
		return r.n
	}
	return nil
}

// Nodes returns the ids of all configured nodes.
func (s *Stamp) Nodes() []geo.NodeID { return s.o.Peers }

// Leader returns the range as its leader holds it, nil while there is none.
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

// leaderWait is how long a request waits for a range to have a leader.
const leaderWait = 5 * time.Second

// Submit runs a command on the leader of a range and waits for its result: nil when
// its effect is on every in-sync replica. A command that found no leader did nothing
// and is tried again for a while; one that was proposed never is.
func (s *Stamp) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	return s.withLeader(ctx, id, func(r *ranges.Range) error {
		done := make(chan error, 1)
		r.Submit(cmd, func(err error) { done <- err })
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return kv.ErrUnknown
		}
	})
}

// Read runs a query on the leader of a range: see ranges.Range.Read.
func (s *Stamp) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	return s.withLeader(ctx, id, func(r *ranges.Range) error { return r.Read(ctx, f) })
}

func (s *Stamp) withLeader(ctx context.Context, id geo.RangeID, f func(*ranges.Range) error) error {
	var deadline time.Duration
	for {
		if r := s.Leader(id); r != nil {
			err := f(r)
			if !errors.Is(err, ranges.ErrNotLeader) {
				return err
			}
		}
		now := s.o.Clock.Mono()
		if deadline == 0 {
			deadline = now + leaderWait
		}
		if now > deadline {
			return kv.ErrBusy
		}
		select {
		case <-ctx.Done():
			return kv.ErrBusy // Nothing happened.
		case <-time.After(10 * time.Millisecond):
		}
	}
}
