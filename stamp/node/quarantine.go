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

// A store that fails takes the node out of service; Stamp opens it anew after a while.
// What it may believe then (R4), after a write or an fsync that failed:
//
//   - After a failed fsync the kernel holds pages that it calls clean and that are not on
//     the disk. They can be read, and another fsync of them proves nothing. So nothing that
//     is read counts as durable because it is read.
//   - log: a frame counts if a later record says that an fdatasync behind it succeeded.
//     seglog.Open writes what it finds above the last such mark into a new segment, and
//     syncs that. It was promised to nobody: Append answers after the sync.
//   - extents: the same, chunk by chunk (package extent); what was put and not synced was
//     never called durable.
//   - state: the log above the durable applied index is applied again. Pebble names a table
//     in its manifest only after its fsync, and begins a new manifest at each open, written
//     from what it read and synced before the store is used. So the applied index that a
//     failed sync may have left in the cache is on the disk before a log is trimmed below it.
//   - identity: written anew at each open, see identify.
//
// So a replica keeps its id over a failed fsync: whatever it promised had been synced by a
// call that returned, and whatever it reads beyond that is written again before it is
// promised. What does get lost is found as such, and the replica is rebuilt.
//
// Damage is another matter: the folder is marked, and set aside at the next open. State:
// the log is applied again from its beginning, or, if it was trimmed, the replica is
// rebuilt. Log: the replicas are rebuilt. That takes this copy away, so it is done only
// while the others look whole; until then the store goes on, and what is damaged in it
// answers errors, for every block is checked when it is read.

// quarantine is what is known of the node's stores.
type quarantine struct {
	mu sync.Mutex
	// reasons are why stores are damaged, by folder.
	reasons map[string]error
	// whole: all replicas here are voters that hold their data; gaps counts the ticks in which
	// they were not.
	whole bool
	gaps  uint64
}

// add records that a store is damaged; false if that was known.
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

// mark makes it durable which stores are damaged: the next open sets them aside.
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
// reported lost, on nodes that were active lately. It is not the in-sync set, which only the
// leader knows. Two nodes that find damage in the same moment may both leave; the folders that
// they set aside are then what `range recover` has.
func (s *scheduler) othersWhole() bool {
	if !s.n.o.takesSnapshots() {
		return false // No node could feed this replica again.
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

// checkWhole looks, once a tick, whether all replicas here are voters that hold their data.
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
