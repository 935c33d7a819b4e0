package replica

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// Transfer asks an in-sync replica of those on the given nodes, the first one by before, to lead in place
// of this one, and returns its node; 0 if there is none, or a transfer is under way. It may fail, and
// this replica then goes on to lead; ask again. Meanwhile nothing can be proposed.
//
// From here on no lease holds in this term: the other replica campaigns at once, and its voters do
// not wait until what they promised to this leader has ended (R5). That holds after a transfer that
// failed too, since its message may still arrive: see LeaseVoid.
func (r *Replica) Transfer(nodes []geo.NodeID) geo.NodeID {
	to := r.heir(nodes)
	if to == nil {
		return 0
	}
	_, term := r.Leader()
	r.lease.until, r.lease.voidIn = 0, term
	r.o.Logger.Warn("leadership is transferred", "range", r.o.Range, "to_node", to.node)
	typ, id := pb.MsgTransferLeader, uint64(to.id)
	own := uint64(r.o.ID)
	if err := r.rn.Step(&pb.Message{Type: &typ, From: &id, To: &own}); err != nil {
		r.o.Logger.Warn("leadership cannot be transferred", "range", r.o.Range, "error", err)
		return 0
	}
	return to.node
}

// Heir returns the node that Transfer would ask; 0 for none.
func (r *Replica) Heir(nodes []geo.NodeID) geo.NodeID {
	if to := r.heir(nodes); to != nil {
		return to.node
	}
	return 0
}

func (r *Replica) heir(nodes []geo.NodeID) (to *peer) {
	if !r.IsLeader() || r.Transferring() {
		return nil
	}
	for i, p := range r.inSync.peers {
		if p.id != r.o.ID && !p.out && slices.Contains(nodes, p.node) && (to == nil || r.before(p, *to)) {
			to = &r.inSync.peers[i]
		}
	}
	return to
}

// before reports whether a is to be asked to lead before b: one that may have restarted within an election timeout would
// not campaign (quiet), and the other has less to wait for if it is further.
func (r *Replica) before(a, b peer) bool {
	settled := func(p peer) bool {
		return r.inSync.decided-p.since >= time.Duration(r.o.ElectionTicks)*r.o.Tick
	}
	if settled(a) != settled(b) {
		return settled(a)
	}
	return a.match > b.match
}

// Transferring reports whether a transfer is under way: for an election timeout at most.
func (r *Replica) Transferring() bool {
	return r.IsLeader() && r.rn.BasicStatus().LeadTransferee != raft.None
}

// LeaseVoid reports whether this replica leads in a term in which no lease can hold, because it asked
// another one to lead in it.
func (r *Replica) LeaseVoid() bool {
	_, term := r.Leader()
	return r.IsLeader() && r.lease.voidIn == term
}
