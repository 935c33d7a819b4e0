package replica

import (
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
)

// Disks that are set back, to a copy or a snapshot of before, have a log and a hard state that fit each other: only what
// others know shows that the end is missing (R4). Two facts are compared, each about entries that were committed, which
// no log may lose or change:
//
//	mark      a replica itself reported that it has persisted up to an entry: its peers remember that
//	proof     any replica reports that an entry is committed: the leader has it, whatever its log was like when it was elected
//
// A replica that contradicts the first is lost. A leader that contradicts the second was elected by votes of replicas
// that were set back, or is one: its log has entries in place of committed ones, so it is lost too.

// Mark is the last entry that the replica has persisted and knows to be committed; zero while there is none, or the
// replica is lost. It is durable once the pass in which it was read has ended, and no later log of the replica ends below it.
func (r *Replica) Mark() geo.EntryID {
	if r.lost != nil || r.Installing() {
		return geo.EntryID{}
	}
	hs, _, err := r.o.Log.InitialState()
	if err != nil {
		return geo.EntryID{}
	}
	last, err := r.o.Log.LastIndex()
	if err != nil {
		return geo.EntryID{}
	}
	at := geo.EntryID{Index: min(hs.GetCommit(), last)}
	if at.Term, err = r.o.Log.Term(at.Index); err != nil || at.Term == 0 {
		return geo.EntryID{} // It was trimmed.
	}
	return at
}

// Recall takes what a node remembers of this replica's Mark. If the log does not have that entry the replica is lost.
func (r *Replica) Recall(mark geo.EntryID, by geo.NodeID) {
	if r.lost != nil || r.Installing() {
		return
	}
	last, err := r.o.Log.LastIndex()
	switch {
	case err != nil:
	case mark.Index > last:
		r.lose(fmt.Errorf("%w: node %d remembers index %d of it, and its log ends at %d: its disk was set back", ErrLost, by, mark.Index, last))
	case r.differs(mark):
		r.lose(fmt.Errorf("%w: node %d remembers another entry at index %d of it: its disk was set back", ErrLost, by, mark.Index))
	}
}

// Prove takes a committed entry, as a node reported it that was in a term. A leader of that term or a later one that does
// not have it is lost. One of an earlier term was deposed, and does not know it yet: it may lack the entry.
func (r *Replica) Prove(committed geo.EntryID, term uint64, by geo.NodeID) {
	if plantedbugs.Planted(plantedbugs.ProofIgnored) || !r.IsLeader() || r.Installing() || term > r.rn.BasicStatus().GetTerm() {
		return
	}
	if committed.Index > r.end {
		r.lose(fmt.Errorf("%w: it leads without what was committed: node %d has committed index %d, and the log here ends at %d; disks were set back",
			ErrLost, by, committed.Index, r.end))
	} else if r.differs(committed) {
		r.lose(fmt.Errorf("%w: it leads without what was committed: node %d has committed another entry at index %d; disks were set back",
			ErrLost, by, committed.Index))
	}
}

// differs reports whether the log has another entry in the place of one. What was trimmed or is not there does not differ.
func (r *Replica) differs(e geo.EntryID) bool {
	if e.Term == 0 {
		return false
	}
	term, err := r.o.Log.Term(e.Index)
	return err == nil && term != 0 && term != e.Term
}

// proveAnswer takes an answer to a MsgApp. A follower answers with its commit index if the leader sends what is below: in
// the same term that is in the leader's log.
func (r *Replica) proveAnswer(m *pb.Message) {
	if !m.GetReject() && r.rn.BasicStatus().GetTerm() == m.GetTerm() {
		node, _ := r.members.Of(From(m))
		r.Prove(geo.EntryID{Index: m.GetIndex()}, m.GetTerm(), node.Node)
	}
}

// noteEnd notes where Raft's log ends with what it wants to append. A follower answers nothing beyond that: messages
// leave with the same Ready, or a later one.
func (r *Replica) noteEnd(m *pb.Message) {
	if s := m.GetSnapshot(); !raft.IsEmptySnap(s) {
		r.end = LastOf(s).Index
	}
	if n := len(m.GetEntries()); n > 0 {
		r.end = m.GetEntries()[n-1].GetIndex()
	}
}
