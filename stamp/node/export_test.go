package node

import (
	"context"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/route"
	"antipode/stamp/scrub"
	"antipode/stamp/snapshot"
	"antipode/stamp/state"
)

// What the tests in node_test see of a node beside its exported methods.

const (
	InboxBytesMax = inboxBytesMax
	InboxMax      = inboxMax
	ReserveBytes  = room.ReserveBytes
	RoomMore      = 512 << 20
	PlacementFile = placementFile
)

var StampRanges = route.First().IDs

func (n *Node) Inbox() []Envelope                           { return n.scheduler.inbox.messages }
func (n *Node) Log(id geo.RangeID) state.RangeLog           { return n.stores.logs[id] }
func (n *Node) Placement() *ranges.Placement                { return &n.placement.Placement }
func (n *Node) Has() []geo.RangeID                          { return n.placement.has }
func (n *Node) Opts() Options                               { return n.o }
func (n *Node) Differing() map[geo.NodeID]bool              { return n.placement.differing }
func (n *Node) Scrubber() *scrub.Scrubber                   { return n.scrubber }
func (n *Node) ScrubOptions() scrub.Options                 { return n.scrubOptions() }
func (n *Node) RetryFetches() error                         { return n.fetcher.Retry() }
func (n *Node) Quarantine(store string, reason error)       { n.quarantineStore(store, reason) }
func (n *Node) Identity(id geo.RangeID) membership.Identity { return n.byID[id].membership.Identity() }

// FlushState has the state store write its memtable.
func (n *Node) FlushState() error { return n.stores.state.Flush() }

// TrimUnsynced trims a log as a pass does.
func (n *Node) TrimUnsynced(id geo.RangeID, index uint64) error {
	b := n.stores.log.NewBatch()
	if err := n.stores.logs[id].Trim(b, index); err != nil {
		return err
	}
	return b.Commit(false)
}

// CheckRoom looks at the disk of the node now.
func CheckRoom(n *Node) { n.room.Check() }

// Work runs f on the scheduler.
func (n *Node) Work(ctx context.Context, f func() (refusal, failure error)) error {
	return n.scheduler.do(ctx, f)
}

func (n *Node) Ranges() (out []*ranges.Range) {
	for _, r := range n.ranges {
		out = append(out, r.Range)
	}
	return out
}

// BeginRecovery writes that the replica is being re-formed under a later recovery.
func (n *Node) BeginRecovery(id geo.RangeID, as geo.ReplicaID) error {
	d := n.byID[id].membership.Identity()
	d.Phase, d.Replica = membership.Recovering, as
	return membership.Save(n.o.State.FS, n.o.Dir, id, &d, n.o.Peers)
}

// Held are the messages of a range that wait for payload; nil if none does.
func (n *Node) Held(id geo.RangeID) []Envelope { return n.byID[id].held }

// Hold makes a message wait for its payload; scheduler only.
func (n *Node) Hold(e Envelope) { n.byID[e.Range].hold(e) }

// ReserveSnapshot keeps the node from receiving a snapshot of a range, as one under way does.
func (n *Node) ReserveSnapshot(id geo.RangeID) *snapshot.Reservation { return n.snapshots.Reserve(id) }

// IdleTicks is after how many ticks a peer that reports nothing counts as silent.
const IdleTicks = 2 * repeatTicks

// Ticks counts the ticks of the node; scheduler only.
func (n *Node) Ticks() uint64 { return n.scheduler.ticks }

// Silent reports whether a peer was not active for so long that damaged stores stay.
func (n *Node) Silent(p geo.NodeID) bool {
	return !n.scheduler.active(p)
}

// FailWith takes the node out of service at its next pass.
func (n *Node) FailWith(err error) {
	n.scheduler.inbox.fail(err)
	n.Wake()
}

// Installing reports whether a snapshot of a range is being installed.
func (n *Node) Installing(id geo.RangeID) (yes bool) {
	_ = n.scheduler.do(context.Background(), func() (refusal, failure error) {
		yes = n.byID[id].Replica().Installing()
		return nil, nil
	})
	return yes
}

// MarksFile is the name of the file in which a node remembers its peers.
const MarksFile = "marks"

// Remembered is the index up to which the node remembers the replica of a range on another node.
func (n *Node) Remembered(id geo.RangeID, of geo.NodeID) (index uint64) {
	_ = n.scheduler.do(context.Background(), func() (refusal, failure error) {
		index = n.scheduler.marks.Of(id, of).Index
		return nil, nil
	})
	return index
}
