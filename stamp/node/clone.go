package node

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/durable"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// A clone is a copy of one account at a cut, on one node, which an operator rehearses on. It is a stamp apart, of
// one node that has the number of the node it was made of:
//
//	state      a checkpoint of the state store, hard links, in which WriteClone replaces the account's gates
//	log        empty: the node re-forms each range with itself as the only voter, as after a recovery (R4)
//	extents    what is written in the clone; everything else is read from Options.Base
//
// It lives in a separate folder, and nothing in it is ever read by another node.

// Base has the chunks of a clone that were there before it. Methods may be called concurrently.
type Base interface {
	// HasChunk reports whether a chunk is there, and stays there as long as the clone.
	HasChunk(ref extent.Ref) bool
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// ErrNotEverything: a clone is made on a node that has a replica of every range.
var ErrNotEverything = errors.New("the node has no replica of some ranges")

// HasEverything reports whether a clone can be made of this node: it has a trusted replica of every range, and each has had
// a leader.
func (n *Node) HasEverything(ctx context.Context) bool {
	for _, id := range n.o.Route.IDs() {
		if n.byID[id] == nil {
			return false
		}
		if s, err := n.Survey(ctx, id); err != nil || !s.Trusted || s.Index == 0 {
			return false
		}
	}
	return true
}

// WriteClone writes the folder of a clone's node, which must not exist. It has everything that this node had applied
// when it was called. adapt stages in the clone's state what the account is there, and returns its gate in every range.
// No later time than floor was given to what is in it (R6). Open with Options.Base, in a stamp of this node alone, is to
// follow.
//
// It does not go through the scheduler: a flush and a checkpoint run beside the commits, as a range snapshot does.
func (n *Node) WriteClone(dir string, account geo.Account, floor geo.Timestamp, adapt func(*state.Store, *state.Batch) (change.Gate, error)) error {
	fs := n.o.State.FS
	for _, id := range n.o.Route.IDs() {
		if n.byID[id] == nil {
			return fmt.Errorf("%w: range %d", ErrNotEverything, id)
		}
	}
	if err := durable.MkdirAll(fs, fs.PathJoin(dir, "replicas")); err != nil {
		return err
	}
	if err := n.stores.state.Flush(); err != nil {
		return err
	}
	at := fs.PathJoin(dir, "state")
	if err := n.stores.state.Checkpoint(at); err != nil {
		return err
	}
	copied, err := state.Open(at, n.o.State)
	if err != nil {
		return err
	}
	return errors.Join(n.detach(copied, dir, account, floor, adapt), copied.Close())
}

// detach changes the state of a clone, and writes who its replicas are.
func (n *Node) detach(
	copied *state.Store, dir string, account geo.Account, floor geo.Timestamp, adapt func(*state.Store, *state.Batch) (change.Gate, error),
) (err error) {
	batch := copied.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	gate, err := adapt(copied, batch)
	if err != nil {
		return err
	}
	for _, id := range n.o.Route.IDs() {
		was, err := ranges.MembersIn(copied, id, n.placement.Of(id))
		if err != nil {
			return err
		}
		as, err := was.Recovery().Next(n.o.ID)
		if err != nil {
			return err
		}
		if err := ranges.Detach(batch, id, account, gate, geo.Incarnation(as)); err != nil {
			return err
		}
		d := membership.Identity{Phase: membership.Recovering, Replica: as.Members().List[0].ID, Floor: floor}
		if err := membership.Save(n.o.State.FS, dir, id, &d, []geo.NodeID{n.o.ID}); err != nil {
			return err
		}
	}
	if err := copied.Commit(batch); err != nil {
		return err
	}
	return copied.Flush()
}
