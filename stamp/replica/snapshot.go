package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/state"
)

// Snapshots is what a replica asks of its node if its log no longer reaches back far enough
// for a peer, or if it is itself such a peer. All calls come from the scheduler.
//
// A peer steps the MsgSnap only when the whole state is staged on its disk and the payload of
// that state is in its extents. So a Match never stands for a state without payload (R3). Until
// then the peer keeps its old log, with which it cannot win an election against what was
// committed since.
type Snapshots interface {
	// Offer describes the snapshot that would be taken now. The node carries out the MsgSnap
	// that follows. raft.ErrSnapshotTemporarilyUnavailable makes Raft ask again.
	Offer() (*pb.Snapshot, error)
	// Begin begins to replace the state by the staged one, apart from the scheduler: it may take long.
	Begin(s *pb.Snapshot) error
	// Ended reports whether that has ended, well or not. Once it has, the replica has a Ready.
	Ended() bool
	// Install returns how it ended: the state is replaced, durably. After an error the node is out of service.
	Install(s *pb.Snapshot) error
	// Installed reports that the log, too, begins behind the snapshot, durably.
	Installed() error
}

// storage is Raft's view of a replica.
//
// Its commit index is at least the applied index. The state may be flushed before the log is
// synced with the commit index that allowed the apply, and a crash between the two leaves a
// lower commit index, at which Raft would panic. What was applied was committed.
type storage struct {
	state.RangeLog
	applied   uint64
	conf      *pb.ConfState // as of applied
	snapshots Snapshots
}

// InitialState implements raft.Storage.
func (s storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, _, err := s.RangeLog.InitialState()
	if err == nil && hs.GetCommit() < s.applied {
		term, vote, commit := hs.GetTerm(), hs.GetVote(), s.applied
		hs = &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
	}
	return hs, s.conf, err
}

// Snapshot implements raft.Storage. Raft panics at any other error.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	if s.snapshots == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return s.snapshots.Offer()
}

// Installing reports whether the state is being replaced, apart from the scheduler. Raft applies nothing meanwhile, and
// what it wants to append waits. It answers heartbeats, so that the leader keeps its quorum.
func (r *Replica) Installing() bool { return len(r.waits) > 0 }

// holds reports whether a message waits, since it has a snapshot, whose installation then begins, or follows one.
func (r *Replica) holds(m *pb.Message) (bool, error) {
	if !r.Installing() {
		if raft.IsEmptySnap(m.GetSnapshot()) {
			return false, nil
		}
		if err := r.o.Snapshots.Begin(m.GetSnapshot()); err != nil {
			return false, fmt.Errorf("install snapshot of range %d: %w", r.o.Range, err)
		}
	}
	r.waits = append(r.waits, m)
	return true, nil
}

// installed reports whether what waits can be appended.
func (r *Replica) installed() bool { return r.Installing() && r.o.Snapshots.Ended() }

// install installs the snapshot that Raft accepted: first the state, durably, then the log, in
// the batch of the pass. A crash in between leaves a state ahead of its log. The plan of the
// snapshot, which the node keeps, distinguishes that from a log that lost its end (R4).
func (r *Replica) install(batch state.LogBatch, s *pb.Snapshot) error {
	if err := r.o.Snapshots.Install(s); err != nil {
		return fmt.Errorf("install snapshot of range %d: %w", r.o.Range, err)
	}
	last := LastOf(s)
	r.applied, r.appliedTerm, r.fresh = last.Index, last.Term, false
	r.reconfigure()
	return r.o.Log.Reset(batch, last)
}

// SnapshotOf describes the applied state after entry last, of the given configuration.
func SnapshotOf(last geo.EntryID, m Members) *pb.Snapshot {
	return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{ConfState: m.conf(), Index: &last.Index, Term: &last.Term}}
}

// LastOf is the last entry that a snapshot holds.
func LastOf(s *pb.Snapshot) geo.EntryID {
	return geo.EntryID{Term: s.GetMetadata().GetTerm(), Index: s.GetMetadata().GetIndex()}
}

// ReportSnapshot reports to Raft whether a peer installed its snapshot. After a failure Raft
// asks for another one.
func (r *Replica) ReportSnapshot(to geo.ReplicaID, ok bool) {
	if r.lost != nil || !r.IsLeader() {
		return
	}
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	r.rn.ReportSnapshot(uint64(to), status)
}

// Unreadable is the value with which a replica panics if its log cannot be read. Raft has no
// error for that: it would panic too, with a value that could not be distinguished from a bug.
// The node goes out of service with Err.
type Unreadable struct{ Err error }

// Entries implements raft.Storage.
func (s storage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	entries, err := s.RangeLog.Entries(lo, hi, maxSize)
	if err != nil && !errors.Is(err, raft.ErrCompacted) && !errors.Is(err, raft.ErrUnavailable) {
		panic(Unreadable{fmt.Errorf("read log entries %d to %d: %w", lo, hi-1, err)})
	}
	return entries, err
}
