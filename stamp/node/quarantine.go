package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
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
	mu sync.Mutex
	// reasons are why stores are damaged, by folder.
	reasons map[string]error
	// whole reports whether all replicas here are voters that hold their data.
	whole bool
	// gaps counts the ticks in which whole was false.
	gaps uint64
}

// add records that a store is damaged; it returns false if that was known.
func (q *quarantine) add(store string, reason error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.reasons[store]; known {
		return false
	}
	q.reasons[store] = reason
	return true
}

// damage is why any store is damaged; nil if none is.
func (q *quarantine) damage() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return errors.Join(slices.Collect(maps.Values(q.reasons))...)
}

// mark marks the folders of the damaged stores, durably: the next open sets them aside.
func (q *quarantine) mark(fs vfs.FS, dir string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for store, reason := range q.reasons {
		errs = append(errs, state.MarkDamaged(fs, fs.PathJoin(dir, store), reason))
	}
	return errors.Join(errs...)
}

// quarantineStore records that the store in a folder of the node is damaged. It may be called
// from any goroutine.
func (n *Node) quarantineStore(store string, reason error) {
	if n.quarantine.add(store, reason) {
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
	damage := n.quarantine.damage()
	if damage == nil || !n.scheduler.othersWhole() {
		return nil
	}
	return errors.Join(damage, n.quarantine.mark(n.o.State.FS, n.o.Dir))
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
