package node

import "fmt"

// repeatTicks is after how many ticks a node reports its durable indexes again, for peers that
// restarted.
const repeatTicks = 50

// maintain runs once a tick: it manages the membership of the ranges, flushes the state
// when the replay grows long, reports durable indexes, and trims the log.
func (s *scheduler) maintain() error {
	n := s.n
	s.ticks++
	if err := n.payload.retry(); err != nil {
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
	}
	s.checkWhole()
	if err := n.checkStores(); err != nil {
		return err
	}
	if s.ticks%roomTicks == 1 {
		n.checkRoom()
	}
	if err := s.flushState(); err != nil {
		return err
	}
	return s.trimLogs()
}

// With less than Options.ReserveBytes free on its disk a node takes no writes but deletions, until roomMore above
// that are free. The reserve is for flushes, compactions and trims, which make room. Deletions may use half of
// it: their space comes back after them.
const (
	reserveBytes = 512 << 20 // unless Options say otherwise
	roomMore     = 512 << 20
	roomTicks    = 10
)

// checkRoom compares the free space of the disk with the reserve, once in roomTicks. A file system that
// does not report its free space counts as having room.
func (n *Node) checkRoom() {
	usage, err := n.o.State.FS.GetDiskUsage(n.o.Dir)
	if err != nil {
		return
	}
	roomAgain := n.o.ReserveBytes + roomMore
	full := usage.AvailBytes < n.o.ReserveBytes || n.full.Load() && usage.AvailBytes < roomAgain
	n.bare.Store(full && usage.AvailBytes < n.o.ReserveBytes/2)
	if full == n.full.Swap(full) {
		return
	}
	if full {
		n.o.Logger.Error("disk nearly full: no more writes but deletions until there is room; reads go on",
			"dir", n.o.Dir, "left_bytes", usage.AvailBytes, "needed_bytes", roomAgain)
		n.event(Event{Kind: DiskFull, Node: n.o.ID, Reason: fmt.Sprintf("%d bytes left; writes go on from %d", usage.AvailBytes, roomAgain)})
	} else {
		n.o.Logger.Warn("disk has room again; writes go on", "dir", n.o.Dir, "left_bytes", usage.AvailBytes)
		n.event(Event{Kind: DiskHasRoom, Node: n.o.ID, Reason: fmt.Sprintf("%d bytes left", usage.AvailBytes)})
	}
}

// Disk returns the size of the disk of the node's folder and what is free, zero where not known, and the reserve.
func (n *Node) Disk() (size, free, reserve uint64) {
	usage, _ := n.o.State.FS.GetDiskUsage(n.o.Dir) // Zero with an error.
	return usage.TotalBytes, usage.AvailBytes, n.o.ReserveBytes
}

// DiskFull reports whether the node takes no writes but deletions because its disk is nearly full.
func (n *Node) DiskFull() bool { return n.full.Load() }

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
	s.flushing, err = n.stores.state.AsyncFlush()
	if err == nil && n.o.Stepped {
		<-s.flushing
	}
	return err
}
