package node

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/room"
	"antipode/stamp/snapshot"
	"antipode/stamp/state"
)

// hostedRange is a range with a replica on this node: the range itself, and its log, its replica and
// its membership here. The fields below Range belong to the scheduler.
type hostedRange struct {
	n *Node
	*ranges.Range
	log        state.RangeLog
	membership *membership.Machine
	// held are the MsgApps that wait for payload: see step.
	held []Envelope
	// durable has the durable applied index of each node of the range, as it reported it.
	durable map[geo.NodeID]membership.DurableIndex
	// flushed is the applied index at which the last flush of the state began here.
	flushed uint64
	// unnamed is the index of the last entry applied that may have left chunks without a name: the same on every node.
	unnamed uint64
	// settle is the index up to which the log is trimmed as soon as that is durable everywhere, 0 for none: see
	// scheduler.settle.
	settle uint64
	// committed is the commit index of the log before its last recovery.
	committed uint64
	// reserved is the last reservation of the range, which is busy with what apart began. reformed, if not nil, gets the
	// result of a recovery.
	reserved *snapshot.Reservation
	reformed chan<- error
}

// identify returns which replica of a range this node holds.
func (r *hostedRange) identify() (*membership.Identity, error) {
	n, fs, id := r.n, r.n.o.State.FS, r.ID()
	d, err := membership.Load(fs, n.o.Dir, id)
	switch {
	case errors.Is(err, membership.ErrIdentity):
		return nil, fmt.Errorf("range %d: %w: move %s away and start again, the node is then rebuilt from its peers", id, err, n.o.Dir)
	case err != nil:
		return nil, err // The file may be intact, so the error does not ask to move the folder away.
	case d == nil:
		// The clock gives a folder that was lost and created again another nonce.
		nonce := n.rng.Uint64() ^ uint64(n.o.Clock.Now().UnixNano())
		hs, _, err := r.log.InitialState()
		if err != nil {
			return nil, err
		}
		last, err := r.log.LastIndex()
		if err != nil {
			return nil, err
		}
		tookPart := last > 0 || hs.GetVote() != 0 || hs.GetTerm() > replica.FirstTerm || r.Machine.AppliedState().Index > 0
		d = membership.NewIdentity(n.o.ID, membership.Nonce(nonce), tookPart, r.Machine.Members())
	}
	// An identity that was read is written again too: it may be in the page cache only, if an fsync
	// failed before the restart, and nothing may become durable that depends on it before it is (R4).
	return d, membership.Save(fs, n.o.Dir, id, d, n.o.Peers)
}

// open opens the replica of the range under its identity, and finishes what a crash interrupted. lost
// is why its stores cannot be trusted, nil if they can.
func (r *hostedRange) open(lost error) error {
	n := r.n
	d, err := r.identify()
	if err != nil {
		return err
	}
	life := d.Nonce ^ membership.Nonce(n.o.Clock.Now().UnixNano()) // The clock gives each life another one.
	r.membership = membership.New(membership.Options{
		Life: life,
		Node: n.o.ID, Range: r.ID(), Nodes: n.placement.Of(r.ID()), Placement: membership.SumOf(n.placement.Placement), Rebuilds: n.o.takesSnapshots(),
	}, *d)
	hs, _, err := r.log.InitialState()
	if err != nil {
		return err
	}
	_, err = r.carryOut(membership.Opened{Lost: lost, HardState: !raft.IsEmptyHardState(hs)})
	return err
}

// apart runs f, which may take long, apart from the scheduler, then done on it, and then passes ended to the membership. The
// range must be reserved. While the node opens, and for a recovery of one that is stepped, all of it is done at once.
func (r *hostedRange) apart(f, done func() error, ended membership.Event) error {
	finish := func(err error) error {
		if err == nil {
			err = done()
		}
		if err == nil {
			_, err = r.carryOut(ended)
		}
		return err
	}
	if _, reforms := ended.(membership.Reformed); r.Replica() == nil || reforms && r.n.o.Stepped {
		return finish(f())
	}
	r.reserved.Apart(f, func(err error) error {
		err = finish(err)
		if r.reformed != nil {
			result := err
			if err == nil && r.membership.Identity().Phase != membership.Member {
				result = fmt.Errorf("the replica on node %d %w: a later recovery has retired it", r.n.o.ID, membership.ErrChanged)
			}
			r.reformed <- result
			r.reformed = nil
		}
		return err
	})
	return nil
}

// wipe removes the rows and the log of the range.
func (r *hostedRange) wipe() error {
	return r.apart(func() error { return r.n.snapshots.Empty(r.ID()) }, func() error {
		return r.writeLog(func(batch state.LogBatch) error { return r.log.Reset(batch, geo.EntryID{}) })
	}, membership.Wiped{})
}

// setFirstHardState makes the hard state of a new replica durable.
func (r *hostedRange) setFirstHardState() error {
	return r.writeLog(func(batch state.LogBatch) error {
		return r.log.SetHardState(batch, hardState(replica.FirstTerm, 0, 0))
	})
}

// writeLog makes durable what f writes into the log of the range.
func (r *hostedRange) writeLog(f func(batch state.LogBatch) error) error {
	batch := r.n.stores.log.NewBatch()
	if err := f(batch); err != nil {
		return err
	}
	return batch.Commit(true)
}

func hardState(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

// reopen builds the replica from what the stores hold of the range. lost is why it cannot be trusted
// whatever they hold, nil if it can.
func (r *hostedRange) reopen(lost error) error {
	n, id, applied := r.n, r.ID(), r.Machine.AppliedState().Index
	rep, err := replica.Open(replica.Options{
		Snapshots: n.snapshots.ForRange(id), Lost: lost, Range: id, Node: n.o.ID, ID: r.membership.Identity().Replica, Log: r.log,
		Applied: applied, Machine: r.Machine, Tick: n.o.Tick, ElectionTicks: n.o.ElectionTicks, InSyncTimeout: n.o.InSyncTimeout,
		Alone: n.o.Base != nil, Running: n.scheduler.running,
		Reachable: func(of geo.NodeID) bool { return of == n.o.ID || n.o.Transport.Peer(n.o.ID, of) != nil },
		OnInSync:  r.reportInSync, Leaving: r.Leaving, Room: n.room.Of, SpentBytes: n.room.SpentBytes(), FollowsSpent: ranges.Service(id) == geo.Catalog, Pressed: n.stores.pressed,
		Rand: rand.New(rand.NewPCG(n.rng.Uint64(), uint64(id))), Logger: n.o.Logger,
	}, n.o.Clock.Mono())
	if err != nil {
		return err
	}
	r.Attach(rep)
	r.durable[n.o.ID], r.flushed, r.held = membership.DurableIndex{Replica: rep.ID(), Index: applied}, applied, nil
	return nil
}

// nodeOf returns the node of a replica; 0 for none.
func (r *hostedRange) nodeOf(id geo.ReplicaID) geo.NodeID {
	return r.membership.NodeOf(r.Replica().Members(), id)
}

// reportInSync reports that a replica left the in-sync set of the range, which is led here, or returned
// to it.
func (r *hostedRange) reportInSync(of geo.NodeID, in bool) {
	e := Event{Kind: LeftInSync, Range: r.ID(), Node: of, Reason: "it did not answer in time; writes go on with the others"}
	if r.n.room.Of(of) != room.Plenty {
		e.Reason = "its disk is nearly full; writes go on with the others"
	}
	if in {
		e.Kind, e.Reason = ReturnedInSync, "it caught up"
	}
	r.n.event(e)
}
