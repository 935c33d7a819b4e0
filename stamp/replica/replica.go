package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/plantedbugs"
	"antipode/stamp/feature"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// StateMachine is what committed entries are applied to.
type StateMachine interface {
	// Apply applies entries in order. An error takes the replica out of service; of ErrLater the node.
	Apply(entries []*pb.Entry) error
	// Members is the configuration as applied.
	Members() Members
}

// ErrLost: the replica misses entries that it had acknowledged (R4).
var ErrLost = errors.New("replica lost fsynced entries; it takes no further part")

// ErrLater: the log or the state holds what a later version wrote. The replica has lost nothing: it takes part
// again once its node runs that version.
var ErrLater = feature.ErrLater

// Options configures a replica. Range, Node, ID, Log and Machine are required.
type Options struct {
	Range geo.RangeID
	Node  geo.NodeID
	// ID is the replica's Raft id: see Member.
	ID  geo.ReplicaID
	Log state.RangeLog
	// Applied is the index of the last entry that Machine has applied.
	Applied uint64
	Machine StateMachine
	// Snapshots offers and installs range snapshots. Nil means none: the log must then reach
	// back to what the slowest replica needs.
	Snapshots Snapshots
	// Lost means that the replica cannot be trusted, whatever its log looks like.
	Lost error
	// Tick is the length of one tick. Zero means 100 ms.
	Tick time.Duration
	// ElectionTicks is how many ticks a replica is without a leader before it stands for
	// election, at the least. Zero means 10.
	ElectionTicks int
	// InSyncTimeout is how long a replica may stay behind before it leaves the in-sync set, in
	// running time; a fifth of it if its node is not Reachable. Zero means 1 s. With a short
	// one, a brief delay costs the third copy.
	InSyncTimeout time.Duration
	// Reachable reports whether there is a connection to a node. Nil means to every node.
	Reachable func(geo.NodeID) bool
	// Running is the running time of the scheduler, in which the silence of the other
	// replicas is measured. Nil means monotonic time.
	Running *clock.Running
	// Alone lets the leader acknowledge what it has persisted alone. It is for the replica of a clone, whose writes
	// nobody relies on; every other range has two replicas in sync, or takes no writes (R2).
	Alone bool
	// OnInSync is called, at the leader, with every replica that leaves the in-sync set or
	// returns to it. May be nil.
	OnInSync func(n geo.NodeID, in bool)
	// Leaving reports whether the node is going to stop: the replica then does not campaign, and a transfer of
	// leadership to it fails. Nil means that it is not.
	Leaving func() bool
	// Room is how much room the disks of nodes have, this one included. Nil means plenty.
	Room func(geo.NodeID) room.Level
	// SpentBytes bounds what the replica takes of the log while its disk is Spent, in bytes: see Takes.
	SpentBytes int
	// FollowsSpent has the replica follow on while its disk is Spent, within SpentBytes.
	FollowsSpent bool
	// Pressed reports whether Machine.Apply would have to wait for the disk now: what is committed is then applied in a later
	// pass. The node does one when that may be over. Nil means never.
	Pressed func() bool
	// Rand spreads elections.
	Rand *rand.Rand
	// Logger takes leader changes and alarms. Nil means slog.Default.
	Logger *slog.Logger
}

// InSyncTimeout is the default of Options.InSyncTimeout.
const InSyncTimeout = time.Second

func (o Options) withDefaults() Options {
	if o.Tick == 0 {
		o.Tick = 100 * time.Millisecond
	}
	if o.ElectionTicks == 0 {
		o.ElectionTicks = 10
	}
	if o.InSyncTimeout == 0 {
		o.InSyncTimeout = InSyncTimeout
	}
	if o.Leaving == nil {
		o.Leaving = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Replica is one member of a range's Raft group. All methods are called from the
// node's scheduler.
type Replica struct {
	o  Options
	rn *raft.RawNode

	members Members
	lost    error
	started time.Duration
	fresh   bool // never voted and holds no entry: it may campaign at once
	leads   bool // as of the newest Ready

	// elapsed counts ticks since the leader's last message, or since the last election. A
	// replica that knows no leader campaigns when elapsed reaches drawn.
	elapsed, drawn int
	// seenLeader is the leader whose message came last, and seenAt the running time at which
	// it came; seenLeader is 0 after this replica led.
	seenLeader geo.ReplicaID
	seenAt     time.Duration

	applied     uint64
	appliedTerm uint64
	// replayTo is the last index in the log at the start: entries up to it that are applied
	// since are replayed. logged is how many entries the log had then.
	replayTo uint64
	logged   uint64
	replayed uint64

	inSync inSync
	lease  lease
	// spent is how many bytes were taken since the disk is Spent: see Takes.
	spent int
	round round
	// waits is what Raft wants to append while a snapshot, which is the first of it, is being installed.
	waits []*pb.Message
	// unapplied waits for the state store: see unapplied.go.
	unapplied unapplied
	// end is the index of the last entry of Raft's log, as of the newest Ready: some of it may not be persisted yet.
	end uint64
	// behind is set from before messages name a commit to the followers until it is applied here.
	behind atomic.Bool
}

// heartbeatTicks is how many ticks lie between two heartbeats of an idle leader: a few
// fit into an election timeout.
const heartbeatTicks = 2

// inflightBytesMax is how many bytes of entries are on their way to a peer, and one message. A peer that is behind gets
// entries that only the disk has: so much of it is read in a pass at most, on the scheduler.
const inflightBytesMax = 4 << 20

// Open builds the replica from its log. now is the monotonic time.
func Open(o Options, now time.Duration) (*Replica, error) {
	o = o.withDefaults()
	r := &Replica{o: o, started: now, applied: o.Applied, members: o.Machine.Members()}
	hs, _, err := o.Log.InitialState()
	if err != nil {
		return nil, err
	}
	last, err := o.Log.LastIndex()
	if err != nil {
		return nil, err
	}
	first, err := o.Log.FirstIndex()
	if err != nil {
		return nil, err
	}
	r.replayTo, r.end, r.logged = last, last, last+1-first
	r.fresh = last == 0 && hs.GetVote() == 0 && hs.GetTerm() <= FirstTerm
	r.resetElection()
	if o.Lost != nil {
		r.lose(o.Lost)
		return r, nil
	}
	if hs.GetCommit() > last || o.Applied > last {
		r.lose(fmt.Errorf("%w: log ends at %d, committed %d, applied %d", ErrLost, last, hs.GetCommit(), o.Applied))
		return r, nil
	}
	if o.Applied+1 < first {
		r.lose(fmt.Errorf("%w: state ends at %d, log begins at %d", ErrLost, o.Applied, first))
		return r, nil
	}
	r.rn, err = raft.NewRawNode(&raft.Config{
		ID:                        uint64(o.ID),
		ElectionTick:              o.ElectionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   storage{o.Log, o.Applied, r.members.conf(), o.Snapshots},
		Applied:                   o.Applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             1 << 20,
		MaxCommittedSizePerReady:  4 << 20,
		MaxUncommittedEntriesSize: 64 << 20,
		MaxInflightMsgs:           64,
		MaxInflightBytes:          inflightBytesMax,
		CheckQuorum:               !plantedbugs.Planted(plantedbugs.LongLease),
		PreVote:                   true,
		DisableProposalForwarding: true,
		Logger:                    raftLogger{o.Logger.With("range", o.Range)},
	})
	if err != nil {
		return nil, fmt.Errorf("open replica of range %d: %w", o.Range, err)
	}
	r.inSync.init(o)
	r.inSync.configure(r.members)
	return r, nil
}

// ran is the running time, in which the silence of the other replicas is measured.
func (r *Replica) ran(now time.Duration) time.Duration {
	if r.o.Running == nil {
		return now
	}
	return r.o.Running.Time()
}

// Lose takes the replica out for good: it cannot be trusted any more.
func (r *Replica) Lose(err error) { r.lose(err) }

// FirstTerm is the term of the hard state with which a replica is created. A replica without
// any hard state has lost its log.
const FirstTerm = 1

func (r *Replica) lose(err error) {
	r.lost, r.unapplied = err, unapplied{}
	r.o.Logger.Error("replica lost: it takes no part until it is rebuilt under a new id", "range", r.o.Range, "node", r.o.Node, "replica", r.o.ID, "error", err)
}

// Range is the range of the replica.
func (r *Replica) Range() geo.RangeID { return r.o.Range }

// Lost returns why the replica takes no part any more; nil while it does.
func (r *Replica) Lost() error { return r.lost }

// Step takes one message of a peer.
func (r *Replica) Step(m *pb.Message, now time.Duration) {
	if r.lost != nil {
		return
	}
	switch m.GetType() {
	case pb.MsgApp:
		if len(m.GetEntries()) > 0 && r.overfull(m.GetEntries()) {
			return
		}
	case pb.MsgTimeoutNow: // The leader transfers leadership; a replica that promised not to campaign does not.
		if r.quiet(now) || r.o.Leaving() {
			return
		}
	case pb.MsgVote, pb.MsgPreVote:
		if r.quiet(now) {
			return
		}
		// A pre-vote promises nothing: after one that is granted the replica still has to take the vote.
		r.fresh = r.fresh && m.GetType() == pb.MsgPreVote
	case pb.MsgAppResp:
		if r.proveAnswer(m); r.lost != nil {
			return
		}
	case pb.MsgReadIndex:
		if !r.answersIndex(From(m)) {
			return
		}
	case pb.MsgHeartbeat:
		// The leader names a commit only up to our Match: naming one beyond our log
		// means that we lost what we acknowledged (R4; Raft itself would panic).
		if last, err := r.o.Log.LastIndex(); err == nil && m.GetCommit() > last {
			r.lose(fmt.Errorf("%w: leader %d knows index %d, log ends at %d", ErrLost, m.GetFrom(), m.GetCommit(), last))
			return
		}
	}
	if err := r.rn.Step(m); err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		r.o.Logger.Warn("message refused", "range", r.o.Range, "type", m.GetType(), "error", err)
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		if r.rn.BasicStatus().Lead == m.GetFrom() {
			r.fresh = false
			r.elapsed, r.seenLeader, r.seenAt = 0, From(m), r.ran(now)
		}
	case pb.MsgVote:
		if s := r.rn.BasicStatus(); s.GetVote() == m.GetFrom() && s.GetTerm() == m.GetTerm() {
			r.elapsed = 0 // It may win.
		}
	}
}

// IsLeader reports whether this replica leads its group.
func (r *Replica) IsLeader() bool {
	return r.lost == nil && r.rn.BasicStatus().RaftState == raft.StateLeader
}

// Leader returns the leader that this replica knows, 0 for none, and this replica's term.
func (r *Replica) Leader() (geo.NodeID, uint64) {
	if r.lost != nil {
		return 0, 0
	}
	s := r.rn.BasicStatus()
	lead, _ := r.members.Of(geo.ReplicaID(s.Lead))
	return lead.Node, s.GetTerm()
}

// MayEvaluate reports whether it leads and has applied an entry of its own term (R1).
func (r *Replica) MayEvaluate() bool {
	if !r.IsLeader() {
		return false
	}
	return r.rn.BasicStatus().GetTerm() == r.appliedTerm
}

// Propose submits an entry to Raft. raft.ErrProposalDropped means that it was not
// appended and never will be.
func (r *Replica) Propose(data []byte) error {
	if r.lost != nil {
		return raft.ErrProposalDropped
	}
	return r.rn.Propose(data)
}

// Applied is the index of the last entry applied.
func (r *Replica) Applied() uint64 { return r.applied }

// Replay returns how many entries were applied again since the start, and how many
// the log held then.
func (r *Replica) Replay() (replayed, logged uint64) { return r.replayed, r.logged }

// ReadIndex starts a round that confirms leadership and renews the lease.
func (r *Replica) ReadIndex(now time.Duration) {
	if !r.IsLeader() || r.lease.pending {
		return
	}
	r.lease.pending = true
	r.lease.pendingSince = now
	r.lease.begun++
	sent := binary.LittleEndian.AppendUint64(nil, uint64(now))
	if plantedbugs.Planted(plantedbugs.LeaseWithoutQuorum) {
		r.confirm(sent)
	}
	r.rn.ReadIndex(sent)
}
