package node

import (
	"antipode/stamp/membership"
	"antipode/stamp/room"
)

// repeatTicks is after how many ticks a node reports its durable indexes again, for peers that
// restarted.
const repeatTicks = 50

// maintain runs once a tick: it manages the membership of the ranges, flushes the state
// when the replay grows long, reports durable indexes, and trims the log.
func (s *scheduler) maintain() error {
	n := s.n
	s.ticks++
	if err := n.fetcher.Retry(); err != nil {
		return err
	}
	if err := s.each((*hostedRange).join); err != nil {
		return err
	}
	due := s.ticks%changeTicks == 0
	if err := s.each(func(r *hostedRange) error { return r.manage(due) }); err != nil {
		return err
	}
	for _, r := range n.ranges {
		r.reportLead()
		if r.membership.Identity().Phase == membership.Member {
			s.marks.Manage(r.ID(), r.Replica(), due, s.ticks%repeatTicks == 0, r.report)
		}
	}
	s.marks.Keep(s.ticks, n.start)
	s.checkWhole()
	if err := n.checkStores(); err != nil {
		return err
	}
	n.room.Tick()
	n.room.DropAside(s.allWhole, n.stores.recoveries, n.start)
	if err := s.flushState(); err != nil {
		return err
	}
	return s.trimLogs()
}

// Room is how much room the node's disk has, and what it keeps there of damaged stores.
func (n *Node) Room() *room.Watch { return n.room }

// flushState starts a flush when enough was applied since the last one.
func (s *scheduler) flushState() error {
	n := s.n
	if s.flushing != nil {
		select {
		case <-s.flushing:
			s.flushing = nil
		default:
			return nil
		}
	}
	due := s.settling
	for _, r := range n.ranges {
		since := r.Machine.AppliedState().Index - r.flushed
		due = due || since >= n.o.FlushEntries || since > 0 && n.snapshots.FlushFreesLog(r.ID())
	}
	s.settling = false
	if !due {
		return nil
	}
	for _, r := range n.ranges {
		r.flushed = r.Machine.AppliedState().Index
	}
	var err error
	s.flushing, err = n.stores.state.AsyncFlush()
	if err == nil && n.o.Stepped {
		<-s.flushing
	}
	return err
}
