package node

import (
	"fmt"

	"antipode/stamp/membership"
)

// The log is trimmed below every configured replica's durable applied index, stopped or
// not, so that a short absence costs no snapshot; and beyond LogBytesMax below this
// node's own, so that a long one costs no disk: see trimTo.

// A trim removes this many entries or bytes at least: it writes a range tombstone. In
// bytes it is small beside the log store's memtable, so that most entries are gone
// before the store would write them a second time, into tables.
const (
	trimEntriesMin = 4096
	trimBytesMin   = 2 << 20
)

// repeatTicks is after how many ticks a node reports its durable indexes again, for peers that
// restarted.
const repeatTicks = 50

// maintain runs once a tick: it looks after the membership of the ranges, flushes the state
// when the replay grows long, reports durable indexes, and trims the log.
func (n *Node) maintain() error {
	n.sched.ticks++
	if err := n.payload.retry(); err != nil {
		return err
	}
	if err := n.each((*hostedRange).join); err != nil {
		return err
	}
	due := n.sched.ticks%changeTicks == 0
	if err := n.each(func(r *hostedRange) error { return r.manage(due) }); err != nil {
		return err
	}
	for _, r := range n.ranges {
		r.reportLead()
	}
	n.checkWhole()
	if err := n.checkStores(); err != nil {
		return err
	}
	if n.sched.ticks%roomTicks == 1 {
		n.checkRoom()
	}
	if err := n.flushState(); err != nil {
		return err
	}
	batch := n.stores.log.NewBatch()
	trimmed := false
	for _, r := range n.ranges {
		own, err := r.Machine.DurableIndex()
		if err != nil {
			return err
		}
		id := r.ID()
		changed := own != r.durable[n.o.ID] || n.sched.ticks%repeatTicks == 0
		r.durable[n.o.ID] = own
		least := own
		for _, p := range n.placement.Of(id) {
			least = min(least, r.durable[p])
			if changed && p != n.o.ID {
				r.report(p, membership.DurableIndex{Index: own})
			}
		}
		least, over := r.trimTo(least, own)
		entries, bytes := r.log.UpTo(least)
		if entries >= trimEntriesMin || bytes >= trimBytesMin || over && entries > 0 {
			if err := r.log.Trim(batch, least); err != nil {
				return err
			}
			trimmed = true
		}
	}
	if !trimmed {
		return nil
	}
	return batch.Commit(false)
}

// Of the disk: below Options.ReserveBytes a node takes no more writes, until there are
// roomMore above it. What is left is for flushes, compactions and trims, which make room.
const (
	reserveBytes = 512 << 20 // unless Options say otherwise
	roomMore     = 512 << 20
	roomTicks    = 10
)

// checkRoom looks at the disk once in a while. A file system that cannot tell is taken
// to have room.
func (n *Node) checkRoom() {
	usage, err := n.o.State.FS.GetDiskUsage(n.o.Dir)
	if err != nil {
		return
	}
	roomAgain := n.o.ReserveBytes + roomMore
	full := usage.AvailBytes < n.o.ReserveBytes || n.full.Load() && usage.AvailBytes < roomAgain
	if full == n.full.Swap(full) {
		return
	}
	if full {
		n.o.Logger.Error("disk nearly full: no more writes until there is room; reads go on",
			"dir", n.o.Dir, "left_bytes", usage.AvailBytes, "needed_bytes", roomAgain)
		n.event(Event{Kind: DiskFull, Node: n.o.ID, Reason: fmt.Sprintf("%d bytes left; writes go on from %d", usage.AvailBytes, roomAgain)})
	} else {
		n.o.Logger.Warn("disk has room again; writes go on", "dir", n.o.Dir, "left_bytes", usage.AvailBytes)
		n.event(Event{Kind: DiskHasRoom, Node: n.o.ID, Reason: fmt.Sprintf("%d bytes left", usage.AvailBytes)})
	}
}

// DiskFull reports whether the node takes no writes for want of room on its disk.
func (n *Node) DiskFull() bool { return n.full.Load() }

// flushState starts a flush when enough was applied since the last one.
func (n *Node) flushState() error {
	if n.sched.flushing != nil {
		select {
		case <-n.sched.flushing:
			n.sched.flushing = nil
		default:
			return nil
		}
	}
	due := false
	for _, r := range n.ranges {
		since := r.Machine.AppliedState().Index - r.flushed
		due = due || since >= n.o.FlushEntries || since > 0 && r.overBudget()
	}
	if !due {
		return nil
	}
	for _, r := range n.ranges {
		r.flushed = r.Machine.AppliedState().Index
	}
	var err error
	n.sched.flushing, err = n.stores.state.AsyncFlush()
	if err == nil && n.o.Stepped {
		<-n.sched.flushing
	}
	return err
}
