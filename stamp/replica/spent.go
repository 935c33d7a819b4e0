package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/internal/plantedbugs"
	"antipode/stamp/room"
)

// A replica whose disk is Spent takes no entries that the range can do without. Reads must go on all the same, and they
// need a leader that has committed an entry of its own term (R1), and on each node a catalog that is not behind: it names
// the accounts. So the replica takes
//
//   - the first entry of a leader's term, which is empty, with those of former terms before it;
//   - while no quorum is left without Spent replicas, what else its leader had proposed before it knew that;
//   - all entries of the catalog, which are few and small, up to half of the bound.
//
// Together they are bounded by Options.SpentBytes, from when the disk became Spent until it has more room. A leader
// without such a quorum proposes nothing: see Standstill.

// Takes reports whether the replica takes a MsgApp, as far as the room on its disk goes. It is called once for each
// message that is then passed to Step. Raft sends again what was not taken.
func (r *Replica) Takes(m *pb.Message) bool {
	if r.lost != nil || r.o.Room == nil || r.o.Room(r.o.Node) != room.Spent {
		r.spent = 0
		return true
	}
	if len(m.GetEntries()) > 0 && plantedbugs.Planted(plantedbugs.ReadsNeedRoom) {
		return false
	}
	last, err := r.o.Log.LastIndex()
	if err != nil || m.GetIndex() > last {
		return true // Raft refuses it, and the leader learns where this log ends.
	}
	bytes, needed, most := 0, !r.roomyQuorum(), r.o.SpentBytes
	if r.o.FollowsSpent && !needed {
		needed, most = true, most/2
	}
	for _, e := range m.GetEntries() {
		if !needed && e.GetTerm() == m.GetTerm() && len(e.GetData()) > 0 {
			return false
		}
		if e.GetIndex() > last {
			bytes += len(e.GetData())
		}
	}
	if bytes > 0 && r.spent+bytes > most {
		return false
	}
	r.spent += bytes
	return true
}

// Standstill reports whether nothing that this leader proposes would be committed: its disk and those of the others
// have so little room that no quorum takes entries. The leader itself takes what it proposes.
func (r *Replica) Standstill() bool {
	return r.o.Room != nil && !r.quorum(func(m Member) bool { return m.ID == r.o.ID || r.o.Room(m.Node) != room.Spent })
}

// roomyQuorum reports whether a quorum is there without this replica and others whose disks are Spent.
func (r *Replica) roomyQuorum() bool {
	return r.quorum(func(m Member) bool { return r.o.Room(m.Node) != room.Spent })
}

// quorum reports whether more than half of the voters are as asked for.
func (r *Replica) quorum(is func(Member) bool) bool {
	voters, n := r.members.Voters(), 0
	for _, m := range voters {
		if is(m) {
			n++
		}
	}
	return 2*n > len(voters)
}
