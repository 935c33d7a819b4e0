package node

import (
	"errors"
	"fmt"

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

// condemn says that the store in a folder of the node is damaged. It may be called from
// any goroutine.
func (n *Node) condemn(store string, reason error) {
	n.mu.Lock()
	_, known := n.condemned[store]
	if !known {
		n.condemned[store] = reason
	}
	n.mu.Unlock()
	if !known {
		n.event(Event{Kind: StoreDamaged, Node: n.o.ID, Reason: store + ": " + reason.Error()})
		n.Wake()
	}
}

// checkStores returns why the node cannot go on, once a tick: a store that failed, or one
// that is damaged and may go.
func (n *Node) checkStores() error {
	if err := n.extents.Failed(); err != nil {
		return err
	}
	switch err := n.state.Failed(); {
	case errors.Is(err, state.ErrDamaged):
		n.condemn("state", err)
	case err != nil:
		return fmt.Errorf("state store: %w", err)
	}
	n.mu.Lock()
	var reasons []error
	for _, reason := range n.condemned {
		reasons = append(reasons, reason)
	}
	n.mu.Unlock()
	if len(reasons) == 0 || !n.othersWhole() {
		return nil
	}
	return errors.Join(errors.Join(reasons...), n.markCondemned())
}

// markCondemned makes it durable which stores are damaged: the next open sets them aside.
func (n *Node) markCondemned() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for store, reason := range n.condemned {
		errs = append(errs, state.MarkDamaged(n.o.Engine.FS, n.o.Engine.FS.PathJoin(n.o.Dir, store), reason))
	}
	return errors.Join(errs...)
}

// othersWhole reports whether the other replicas of every range here are voters that
// nobody called lost, on nodes that were heard lately. It is not the in-sync set, which
// the leader alone knows. Two nodes that find damage in the same moment may both leave;
// the folders that they set aside are then what `range recover` has.
func (n *Node) othersWhole() bool {
	if !n.takesSnapshots() {
		return false // Nobody could feed this replica again.
	}
	for _, r := range n.ranges {
		members := r.Replica().Members()
		for _, p := range n.placement.Of(r.ID()) {
			if p == n.o.ID {
				continue
			}
			m, ok := members.On(p)
			if !ok || m.Learner || n.reported[r.ID()][p] == m.ID || n.ticks > n.heardAt[p]+2*retellTicks {
				return false
			}
		}
	}
	return true
}

// settle notes, once a tick, whether all replicas here are voters that hold their data.
func (n *Node) settle() {
	settled := true
	for _, r := range n.ranges {
		d, rep := n.identities[r.ID()], r.Replica()
		own, ok := rep.Members().On(n.o.ID)
		settled = settled && d.phase == member && rep.Lost() == nil && ok && own.ID == d.replica && !own.Learner
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settled = settled
	if !settled {
		n.unsettled++
	}
}
