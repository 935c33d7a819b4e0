package node

import (
	"context"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/membership"
	"antipode/stamp/replica"
)

// scheduler is the one goroutine that drives all ranges of a node, in passes.
type scheduler struct {
	n     *Node
	inbox inbox
	// running is the running time, which each pass advances.
	running  *clock.Running
	times    times
	nextTick time.Duration
	ticks    uint64
	// collected is what the replicas have ready in a pass.
	collected replica.Pass
	// flushing is closed when the last flush of the state has ended; nil if none is under way.
	flushing <-chan struct{}
	// settling: the state is flushed whatever was applied: see settle.
	settling bool
	// activeAt is the tick at which a peer last reported a durable index.
	activeAt map[geo.NodeID]uint64
	// marks are what the node remembers of its peers.
	marks *membership.Marks
}

// run does passes until ctx ends or the node fails.
func (s *scheduler) run(ctx context.Context) error {
	timer := time.NewTimer(s.n.o.Tick)
	defer timer.Stop()
	armed := time.Duration(0) // the tick for which the timer is set
	for {
		busy, err := s.pass()
		if err != nil {
			return err
		}
		if busy {
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		if armed != s.nextTick {
			armed = s.nextTick
			timer.Reset(max(armed-s.n.o.Clock.Mono(), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.inbox.wake:
		case <-timer.C:
			armed = 0 // It may have come a little early.
		}
	}
}

// do runs f on the scheduler and returns its errors. A refusal leaves the node in service, a failure takes it out of
// service. It may be called from any goroutine. If ctx ends first, f may still run. On a stepped node f runs at once:
// the caller must be the goroutine that does the passes, between two of them.
func (s *scheduler) do(ctx context.Context, f func() (refusal, failure error)) error {
	if s.n.o.Stepped {
		refusal, failure := f()
		if failure != nil {
			s.n.fail(failure)
		}
		return errors.Join(refusal, failure)
	}
	done := make(chan error, 1)
	s.inbox.later(func() error {
		refusal, failure := f()
		done <- errors.Join(refusal, failure)
		return failure
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.n.ctx.Done():
		return ErrUnreachable
	}
}

// pass does one pass and reports whether there may be more work at once. A replica that
// cannot read its store takes the node out of service.
func (s *scheduler) pass() (busy bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			unreadable, ok := r.(replica.Unreadable)
			if !ok {
				panic(r)
			}
			err = unreadable.Err
			s.n.fail(err)
		}
	}()
	return s.doPass()
}

func (s *scheduler) doPass() (busy bool, err error) {
	n := s.n
	messages, work, err := s.inbox.take()
	n.snapshots.BeginPass()
	// The clock is read after the inbox was taken. So no tick that follows a heartbeat counts time
	// from before the heartbeat came, however long the process pauses within this pass (R5).
	now := n.o.Clock.Mono()
	s.running.Advance(now)
	if err != nil {
		return false, err
	}
	for _, f := range work {
		if err := f(); err != nil {
			n.fail(err)
			return false, err
		}
	}
	if err := s.step(messages, now); err != nil {
		n.fail(err)
		return false, err
	}
	n.clocks.Pass()
	n.snapshots.FinishSends(now)
	n.snapshots.StepArrived(now)
	ticked := now >= s.nextTick
	if ticked {
		// Missed ticks are not made up for: a lease relies on ticks being no shorter than Tick.
		s.nextTick = now + n.o.Tick
		n.clocks.Tick(n.placement.Nodes, slices.ContainsFunc(n.ranges, (*hostedRange).ClockRefused), now, s.running.Time())
		for _, r := range n.ranges {
			if r.membership.Identity().Phase == membership.Member {
				r.Replica().Tick(now)
			}
		}
	}
	for _, r := range n.ranges {
		r.Work(now)
	}
	busy, err = s.ready(now)
	n.snapshots.FinishArrived()
	err = errors.Join(err, s.each((*hostedRange).keepLost))
	if err == nil && ticked {
		err = s.maintain()
	}
	if err != nil {
		n.fail(err)
	}
	return busy, err
}

// ready collects what all replicas have ready, sends messages, applies entries, writes the log once,
// and sends the messages that waited for that write.
func (s *scheduler) ready(now time.Duration) (busy bool, err error) {
	p := &s.collected
	p.Reset()
	for _, r := range s.n.ranges {
		if r.Replica().HasReady() {
			busy = true
			r.Replica().Collect(p)
		}
	}
	if !busy {
		return false, nil
	}
	s.flushSends(p)
	p.Apply(true)
	for _, r := range s.n.ranges {
		r.AnswerReads(now) // They waited for what was applied, and need not wait for the fsync.
	}
	if err := p.Append(s.n.stores.log); err != nil {
		return false, err
	}
	s.flushSends(p)
	p.Apply(false)
	return true, nil
}

// each calls f for every range, until one fails.
func (s *scheduler) each(f func(*hostedRange) error) error {
	for _, r := range s.n.ranges {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// flushSends passes the collected messages to the transport, one batch per peer.
func (s *scheduler) flushSends(p *replica.Pass) {
	n := s.n
	for i, m := range p.Sends {
		if m.GetType() == pb.MsgSnap {
			n.snapshots.Send(p.From[i].Range(), m)
		}
	}
	for _, peer := range n.o.Peers {
		var batch []Envelope
		for i, m := range p.Sends {
			if m.GetType() != pb.MsgSnap && n.byID[p.From[i].Range()].nodeOf(replica.To(m)) == peer {
				batch = append(batch, Envelope{Range: p.From[i].Range(), Message: m})
			}
		}
		if len(batch) > 0 {
			n.o.Transport.Send(n.o.ID, peer, batch)
		}
	}
	p.Sends, p.From = p.Sends[:0], p.From[:0]
}
