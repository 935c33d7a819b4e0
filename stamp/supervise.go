package stamp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/feature"
	"antipode/stamp/node"
	"antipode/stamp/room"
)

// A node that failed is closed and opened again in its process, since nothing is retried on a
// store that failed: node/quarantine.go describes what a restart may trust. Each failure in a
// row doubles the wait, which begins with node.Options.RestartAfter. A node that runs for
// steadyAfter ends the row; after restartsMax failures in a row the node stays out of service
// until it is started. So it does at once after feature.ErrLater, which no restart mends. A node whose disk is
// full is opened once it has room, however long that takes.
const (
	restartsMax = 6
	steadyAfter = 10 * time.Minute
)

// supervise runs a node, and the ones opened in its place, until ctx ends or it stays out
// of service.
func (s *Stamp) supervise(ctx context.Context, id geo.NodeID, r *running) {
	for failures := 0; ; {
		began := s.o.Clock.Mono()
		failed := r.n.Run(ctx)
		if failed == nil || !s.takeDown(id, r, failed) {
			return // Stop closes it.
		}
		if s.o.Clock.Mono()-began >= steadyAfter {
			failures = 0
		}
		for _, f := range s.onStop {
			f(r.n)
		}
		_ = r.n.Close(false) // Its stores failed: the reason is in failed.
		r.closed = true
		for reopened := false; !reopened; {
			if errors.Is(failed, feature.ErrLater) {
				s.giveUp(id, r, failed, "node stopped: it has what a later version wrote; nothing is lost, start it with the version that wrote it")
				return
			}
			if failures == restartsMax {
				s.giveUp(id, r, failed, "node failed again and again: it stays out of service until it is started; look at its disk")
				return
			}
			if clock.Wait(ctx, r.o.RestartAfter<<failures) != nil {
				return
			}
			if !s.hasRoom(ctx, id, r) {
				return
			}
			failures++
			if err := s.reopen(id, r); err != nil {
				failed = err
				continue
			}
			reopened = true
		}
		s.event(node.Event{Kind: node.NodeRestarted, Node: id, Reason: fmt.Sprintf("after: %v", failed)})
	}
}

// hasRoom waits until a node that failed has the room to be opened; it returns false if ctx ends first.
func (s *Stamp) hasRoom(ctx context.Context, id geo.NodeID, r *running) bool {
	for waits := false; !room.Opens(r.o.State.FS, r.o.Dir, r.o.ReserveBytes); waits = true {
		if !waits {
			s.o.Logger.Error("node failed and its disk is full: it is started again once there is room",
				"location", s.o.Location, "node", id, "dir", r.o.Dir)
		}
		if clock.Wait(ctx, r.o.RestartAfter) != nil {
			return false
		}
	}
	return true
}

// giveUp leaves a node that failed out of service until it is started.
func (s *Stamp) giveUp(id geo.NodeID, r *running, failed error, why string) {
	s.mu.Lock()
	r.gaveUp = true
	s.mu.Unlock()
	s.event(node.Event{Kind: node.NodeOutOfService, Node: id, Reason: failed.Error()})
	s.o.Logger.Error(why, "location", s.o.Location, "node", id, "error", failed)
}

// takeDown moves a failed node from s.nodes to s.down. It returns false if Stop already took
// the node.
func (s *Stamp) takeDown(id geo.NodeID, r *running, failed error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[id] != r {
		return false
	}
	delete(s.nodes, id)
	s.down[id] = r
	r.failed = failed
	return true
}

// reopen opens a node in place of one that was closed and lets it serve.
func (s *Stamp) reopen(id geo.NodeID, r *running) error {
	r.o.Seed += 1 << 32 // Each life has other random numbers.
	n, err := node.Open(r.o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		r.failed = err
		s.o.Logger.Error("node does not open again", "location", s.o.Location, "node", id, "error", err)
		return err
	}
	r.n, r.closed = n, false
	if s.down[id] == r { // Otherwise Stop waits for this goroutine and then closes the node.
		delete(s.down, id)
		s.serve(id, r)
	}
	return nil
}

// unopened keeps why a start did not open a node, which is out of service until it is started again or stopped. The
// caller holds mu.
func (s *Stamp) unopened(id geo.NodeID, failed error) {
	r := s.down[id]
	if r == nil {
		r = &running{cancel: func() {}, done: make(chan struct{}), gaveUp: true, closed: true}
		close(r.done)
		s.down[id] = r
	}
	r.failed = failed
}

// Down returns why a node that was not stopped is out of service; nil if it is not.
func (s *Stamp) Down(id geo.NodeID) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.down[id]; r != nil {
		return r.failed
	}
	return nil
}

// StaysDown reports whether a node is out of service until it is started. Others are opened again.
func (s *Stamp) StaysDown(id geo.NodeID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.down[id]
	return r != nil && r.gaveUp
}

func (s *Stamp) event(e node.Event) {
	s.o.Logger.Warn("event", "location", s.o.Location, "kind", e.Kind, "of_node", e.Node, "reason", e.Reason)
	if s.o.OnEvent != nil {
		s.o.OnEvent(e)
	}
}
