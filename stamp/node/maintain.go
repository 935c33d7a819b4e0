package node

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
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

// retellTicks is after how many ticks a node tells its durable indexes again, for
// peers that restarted.
const retellTicks = 50

// maintain runs once a tick: flush the state when the replay grows long, learn and
// tell durable indexes, trim the log.
func (n *Node) maintain() error {
	n.ticks++
	if err := n.refetch(); err != nil {
		return err
	}
	if err := n.hello(); err != nil {
		return err
	}
	n.tendMembers()
	n.tellLeads()
	n.settle()
	if err := n.checkStores(); err != nil {
		return err
	}
	if n.ticks%roomTicks == 1 {
		n.checkRoom()
	}
	if err := n.flushState(); err != nil {
		return err
	}
	batch := n.log.NewBatch()
	trimmed := false
	for _, r := range n.ranges {
		own, err := r.Machine.DurableIndex()
		if err != nil {
			return err
		}
		id := r.ID()
		n.mu.Lock()
		known := n.durable[id]
		changed := own != known[n.o.ID] || n.ticks%retellTicks == 0
		known[n.o.ID] = own
		least := own
		for _, p := range n.placement.Of(id) {
			least = min(least, known[p])
		}
		n.mu.Unlock()
		if changed {
			n.tellDurable(id, own)
		}
		least, over := n.trimTo(id, least, own)
		entries, bytes := n.logs[id].UpTo(least)
		if entries >= trimEntriesMin || bytes >= trimBytesMin || over && entries > 0 {
			if err := n.logs[id].Trim(batch, least); err != nil {
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
	usage, err := n.o.Engine.FS.GetDiskUsage(n.o.Dir)
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
	if n.flushing != nil {
		select {
		case <-n.flushing:
			n.flushing = nil
		default:
			return nil
		}
	}
	due := false
	for _, r := range n.ranges {
		since := r.Machine.AppliedState().Index - n.flushed[r.ID()]
		due = due || since >= n.o.FlushEntries || since > 0 && n.overBudget(r.ID())
	}
	if !due {
		return nil
	}
	for _, r := range n.ranges {
		n.flushed[r.ID()] = r.Machine.AppliedState().Index
	}
	var err error
	n.flushing, err = n.state.AsyncFlush()
	if err == nil && n.o.Stepped {
		<-n.flushing
	}
	return err
}

// tellDurable tells the peers this node's durable applied index of a range, in a
// message that Raft never sees.
func (n *Node) tellDurable(id geo.RangeID, index uint64) {
	for _, p := range n.placement.Of(id) {
		if p != n.o.ID {
			n.o.Transport.Send(n.o.ID, p, []Envelope{{Range: id, Message: durableMessage(n.o.ID, index)}})
		}
	}
}

func durableMessage(from geo.NodeID, index uint64) *pb.Message {
	typ, id := msgDurable, uint64(from)
	return &pb.Message{Type: &typ, From: &id, Index: &index}
}

// msgDurable is a message type of ours, outside Raft's numbers.
const msgDurable = pb.MessageType(1000)

// hearDurable takes a peer's durable applied index.
func (n *Node) hearDurable(id geo.RangeID, from geo.NodeID, index uint64) {
	n.heardAt[from] = n.ticks
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.durable[id]; known != nil {
		known[from] = max(known[from], index)
	}
}
