package node

import (
	"errors"
	"fmt"
	"sync"

	"antipode/geo"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// A store that fails takes the node out of service; Stamp opens the node again after a while. What the
// node may then rely on (R4), after a write or an fsync that failed:
//
//   - After a failed fsync the kernel holds pages that it marks clean and that are not on the disk.
//     They can be read, and another fsync of them proves nothing. So what is read does not count
//     as durable for that reason.
//   - log: a frame counts as durable if a later record marks a successful fdatasync after it.
//     seglog.Open writes the frames above the last such mark into a new segment and syncs it. No
//     answer depended on them yet: Append answers after the sync.
//   - extents: the same for each chunk (package extent). A chunk that was put and not synced was
//     never reported durable.
//   - state: the log above the durable applied index is applied again. Pebble names a table
//     in its manifest only after its fsync, and begins a new manifest at each open, written
//     from what it read and synced before the store is used. So the applied index that a
//     failed sync may have left in the cache is on the disk before a log is trimmed below it.
//   - identity: written again at each open, see identify.
//
// So a replica keeps its id over a failed fsync: what it promised had been synced by a call that
// returned, and what it reads beyond that is written again before it is promised. What is lost
// nevertheless is detected, and the replica is rebuilt.
//
// The folder of a damaged store is marked, and set aside at the next open. After that of the state the
// log is applied again from its beginning, or, if it was trimmed, the replica is rebuilt. After that of
// the log the replicas are rebuilt. This removes one copy of the data, so the node does it only while
// the other replicas look whole. Until then the store stays in use, and reads of its damaged blocks
// fail: every block is checked when it is read.

// quarantine records which stores of a node are damaged, and whether its replicas are whole.
type quarantine struct {
	room.Damage
	mu sync.Mutex
	// whole reports whether all replicas here are voters that hold their data.
	whole bool
	// gaps counts the ticks in which whole was false.
	gaps uint64
}

// quarantineStore records that the store in a folder of the node is damaged. It may be called
// from any goroutine.
func (n *Node) quarantineStore(store string, reason error) {
	if n.quarantine.Add(store, reason) {
		n.event(Event{Kind: StoreDamaged, Node: n.o.ID, Reason: store + ": " + reason.Error()})
		n.Wake()
	}
}

// checkStores returns why the node cannot go on, once a tick: a store that failed, or one
// that is damaged and may be set aside.
func (n *Node) checkStores() error {
	if err := n.stores.extents.Failed(); err != nil {
		return err
	}
	switch err := n.stores.state.Failed(); {
	case errors.Is(err, state.ErrDamaged):
		n.quarantineStore("state", err)
	case err != nil:
		return fmt.Errorf("state store: %w", err)
	}
	damage := n.quarantine.Err()
	if damage == nil || !n.scheduler.othersWhole() {
		return nil
	}
	return errors.Join(damage, n.quarantine.Mark(n.o.State.FS, n.o.Dir))
}

// othersWhole reports whether the other replicas of every range here are voters that no node
// reported lost, on nodes that were active lately. It cannot use the in-sync set, which only the
// leader knows. Two nodes that find damage at the same moment may both set their stores aside; these
// folders are then what `range recover` starts from.
func (s *scheduler) othersWhole() bool {
	if !s.n.o.takesSnapshots() {
		return false // No node could rebuild this replica.
	}
	for _, r := range s.n.ranges {
		if !r.membership.OthersWhole(r.Replica().Members(), s.active) {
			return false
		}
	}
	return true
}

// allWhole reports whether no store is damaged, and all replicas of the ranges here are voters that hold their data.
func (s *scheduler) allWhole() bool {
	s.n.quarantine.mu.Lock()
	whole := s.n.quarantine.whole
	s.n.quarantine.mu.Unlock()
	return whole && s.n.quarantine.Err() == nil && s.othersWhole()
}

// active reports whether a peer reported a durable index lately.
func (s *scheduler) active(p geo.NodeID) bool { return s.ticks <= s.activeAt[p]+2*repeatTicks }

// checkWhole records whether all replicas here are voters that hold their data, once a tick.
func (s *scheduler) checkWhole() {
	whole := true
	for _, r := range s.n.ranges {
		whole = whole && r.membership.Whole(r.Replica().Members(), r.Replica().Lost())
	}
	q := &s.n.quarantine
	q.mu.Lock()
	defer q.mu.Unlock()
	q.whole = whole
	if !whole {
		q.gaps++
	}
}
