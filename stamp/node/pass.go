package node

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/stamp/membership"
	"antipode/stamp/replica"
)

// Run works until ctx ends or the node fails; its scrubber until Close.
func (n *Node) Run(ctx context.Context) error {
	n.start(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.ctx, cancel)()
		n.scrubber.Run(ctx)
	})
	timer := time.NewTimer(n.o.Tick)
	defer timer.Stop()
	armed := time.Duration(0) // the tick for which the timer is set
	for {
		busy, err := n.Pass()
		if err != nil {
			return err
		}
		if busy {
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		if armed != n.sched.nextTick {
			armed = n.sched.nextTick
			timer.Reset(max(armed-n.o.Clock.Mono(), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.inbox.wake:
		case <-timer.C:
			armed = 0 // It may have come a little early.
		}
	}
}

// Pass does one round of work and reports whether there may be more at once.
func (n *Node) Pass() (busy bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			unreadable, ok := r.(replica.Unreadable)
			if !ok {
				panic(r)
			}
			err = unreadable.Err
			n.fail(err)
		}
	}()
	return n.doPass()
}

func (n *Node) doPass() (busy bool, err error) {
	messages, work, err := n.inbox.take()
	n.snapshots.BeginPass()
	// After the inbox was taken: no tick that follows a heartbeat is counted from before it
	// came, however long the process stands still in this pass (R5).
	now := n.o.Clock.Mono()
	n.running.Advance(now)
	if err != nil {
		return false, err
	}
	for _, f := range work {
		if err := f(); err != nil {
			n.fail(err)
			return false, err
		}
	}
	if err := n.step(messages, now); err != nil {
		n.fail(err)
		return false, err
	}
	n.snapshots.FinishSends(now)
	n.snapshots.StepArrived(now)
	ticked := now >= n.sched.nextTick
	if ticked {
		// Never to catch up: a lease counts on ticks being no shorter than Tick.
		n.sched.nextTick = now + n.o.Tick
		for _, r := range n.ranges {
			if r.membership.Identity().Phase == membership.Member {
				r.Replica().Tick(now)
			}
		}
	}
	for _, r := range n.ranges {
		r.Work(now)
	}
	busy, err = n.ready()
	err = errors.Join(err, n.snapshots.FinishArrived(), n.each((*hostedRange).keepLost))
	if err == nil && ticked {
		err = n.maintain()
	}
	if err != nil {
		n.fail(err)
	}
	return busy, err
}

// ready collects what all replicas have ready, sends, applies, writes the log once,
// and sends what waited for it.
func (n *Node) ready() (busy bool, err error) {
	p := &n.sched.pass
	p.Reset()
	for _, r := range n.ranges {
		if r.Replica().HasReady() {
			busy = true
			r.Replica().Collect(p)
		}
	}
	if !busy {
		return false, nil
	}
	n.flushSends(p)
	p.Apply(true)
	if err := p.Append(n.stores.log); err != nil {
		return false, err
	}
	n.flushSends(p)
	p.Apply(false)
	return true, nil
}

// each calls f for every range, until one fails.
func (n *Node) each(f func(*hostedRange) error) error {
	for _, r := range n.ranges {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// flushSends passes the collected messages to the transport, one batch per peer.
func (n *Node) flushSends(p *replica.Pass) {
	if len(p.Sends) == 0 {
		return
	}
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
