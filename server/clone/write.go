package clone

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/durable"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// A clone is a stamp of one node, which has the number of the node that it was made of. Its folder is that of a node:
//
//	state      a checkpoint of the host's state store, hard links, in which own and ranges.Detach replace what the
//	           account is and drop everything of streams
//	log        empty: the node re-forms each range with itself as the only voter, as after a recovery (R4)
//	extents    what is written in the clone; everything else is read from node.Options.Base

// errNotEverything: a clone is made of a node that has a replica of every range.
var errNotEverything = errors.New("the node has no replica of some ranges")

// write writes the folder dir of a clone's node. It has everything that the host had applied when it was called. No later
// time than floor was given to what is in it (R6).
//
// It does not go through the host's scheduler: a flush and a checkpoint run beside the commits, as a range snapshot does.
func (o Options) write(dir string, floor geo.Timestamp) error {
	for _, id := range o.Node.Route.IDs() {
		if o.Host.Range(id) == nil {
			return fmt.Errorf("%w: range %d", errNotEverything, id)
		}
	}
	fs := fileSystem(o.Node.State)
	if err := durable.MkdirAll(fs, fs.PathJoin(dir, "replicas")); err != nil {
		return err
	}
	if err := o.Host.State().Flush(); err != nil {
		return err
	}
	at := fs.PathJoin(dir, "state")
	if err := o.Host.State().Checkpoint(at); err != nil {
		return err
	}
	s := o.Node.State
	s.FS, s.StateMemTableBytes = fs, memTableBytes
	copied, err := state.Open(at, s)
	if err != nil {
		return err
	}
	return errors.Join(o.detach(copied, dir, floor), copied.Close())
}

// detach changes the state of a clone, and writes who its replicas are.
func (o Options) detach(copied *state.Store, dir string, floor geo.Timestamp) (err error) {
	batch := copied.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	gate, err := own(copied, batch, o.Account, o.Node.Location)
	if err != nil {
		return err
	}
	for _, r := range o.Node.Route.IDs() {
		if err := o.detachRange(copied, batch, dir, r, gate, floor); err != nil {
			return err
		}
	}
	if err := copied.Commit(batch); err != nil {
		return err
	}
	return copied.Flush()
}

// detachRange does that for one range. Its replica is one of a recovery later than all that the range had, which the node
// finishes when it is opened.
func (o Options) detachRange(copied *state.Store, b *state.Batch, dir string, r geo.RangeID, gate change.Gate, floor geo.Timestamp) error {
	id := o.Host.ID()
	was, err := ranges.MembersIn(copied, r, o.Host.Placed(r))
	if err != nil {
		return err
	}
	as, err := was.Recovery().Next(id)
	if err != nil {
		return err
	}
	if err := ranges.Detach(b, r, o.Account, gate, geo.Incarnation(as)); err != nil {
		return err
	}
	d := membership.Identity{Phase: membership.Recovering, Replica: as.Members().List[0].ID, Floor: floor}
	return membership.Save(fileSystem(o.Node.State), dir, r, &d, []geo.NodeID{id})
}
