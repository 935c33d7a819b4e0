package node

import (
	"context"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/snapshot"
	"antipode/stamp/state"
)

// newSnapshots returns the sender and receiver of range snapshots. The stores must be open.
func (n *Node) newSnapshots() *snapshot.Manager {
	o := snapshot.Options{
		Node: snapshotted{n}, FS: n.o.State.FS, Dir: n.o.State.FS.PathJoin(n.o.Dir, "snap"), State: n.stores.state, Log: n.stores.log,
		Chunks: n.stores.extents, Room: n.room, LogBytesMax: n.o.LogBytesMax, FragmentBytes: n.o.SnapshotFragmentBytes, Random: n.rng.Uint64,
		Clock: n.o.Clock, Go: n.o.Go, Logger: n.o.Logger,
	}
	if n.o.takesSnapshots() {
		o.RowChunks = n.rowChunks
	}
	return snapshot.NewManager(n.ctx, o)
}

// TakeSnapshot implements SnapshotMember.
func (n *Node) TakeSnapshot(from geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	in, err := n.AcceptSnapshot(from, h)
	if err != nil {
		return nil, err
	}
	return in, nil
}

// AcceptSnapshot is TakeSnapshot for a caller that waits for the installation in steps. It may
// be called from any goroutine.
func (n *Node) AcceptSnapshot(from geo.NodeID, h snapshot.Header) (*snapshot.Incoming, error) {
	return n.snapshots.Accept(from, h)
}

// snapshotted implements snapshot.Node, where its methods are described.
type snapshotted struct{ n *Node }

func (s snapshotted) Range(id geo.RangeID) *ranges.Range { return s.n.Range(id) }
func (s snapshotted) Log(id geo.RangeID) state.RangeLog  { return s.n.stores.logs[id] }
func (s snapshotted) Placed(id geo.RangeID) []geo.NodeID { return s.n.placement.Of(id) }

func (s snapshotted) NodeOf(id geo.RangeID, r geo.ReplicaID) geo.NodeID {
	return s.n.byID[id].nodeOf(r)
}

func (s snapshotted) IsMember(id geo.RangeID, r geo.ReplicaID) bool {
	return s.n.byID[id].Replica().ID() == r && s.n.byID[id].membership.Identity().Phase == membership.Member
}

func (s snapshotted) Accepts(from geo.NodeID, h snapshot.Header) error {
	if s.n.room.Full() || s.n.Failed() != nil {
		return snapshot.ErrBusy
	}
	return membership.CheckSender(s.n.byID[h.Range].Machine.Members(), s.n.placement.Of(h.Range), replica.From(h.Message), from)
}

func (s snapshotted) Open(to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	return s.n.o.Transport.(SnapshotTransport).Snapshot(s.n.o.ID, to, h)
}

func (s snapshotted) Fetch(ctx context.Context, ref extent.Ref, first geo.NodeID) error {
	return s.n.fetcher.Paced(ctx, ref, first)
}

func (s snapshotted) Replaced(id geo.RangeID, durable uint64) {
	s.n.byID[id].flushed = durable
	s.n.unnamings.Add(1)
}

func (s snapshotted) Installed(id geo.RangeID) {
	s.n.event(Event{Kind: SnapshotInstalled, Range: id, Node: s.n.o.ID, Replica: s.n.byID[id].Replica().ID()})
}

func (s snapshotted) Sent(id geo.RangeID, to geo.ReplicaID) {
	s.n.event(Event{Kind: SnapshotSent, Range: id, Node: s.n.byID[id].nodeOf(to), Replica: to})
}

func (s snapshotted) Slowed(id geo.RangeID, to geo.ReplicaID, slowed bool, reason string) {
	e := Event{Kind: WritesSlowed, Range: id, Node: s.n.byID[id].nodeOf(to), Replica: to, Reason: reason}
	if !slowed {
		e.Kind = WritesNotSlowed
	}
	s.n.event(e)
}

func (s snapshotted) Wake() { s.n.Wake() }

func (s snapshotted) Later(f func() error) { s.n.scheduler.inbox.later(f) }
