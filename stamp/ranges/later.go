package ranges

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/change"
)

// Understands reports whether this program can apply all of the entries, which a leader sent. A replica takes no
// others into its log: so an entry is committed only once a quorum can apply it, and what this replica
// acknowledged it can apply, also as the next leader (R1). It is called on the scheduler.
func (r *Range) Understands(from geo.NodeID, entries []*pb.Entry) bool {
	understands := r.o.Understands
	if understands == nil {
		understands = change.Understood
	}
	for _, e := range entries {
		if e.GetType() != pb.EntryNormal {
			continue
		}
		err := understands(e.Data)
		if err == nil {
			continue
		}
		if at := e.GetIndex(); at != r.later && r.o.OnLater != nil {
			r.later = at
			r.o.OnLater(fmt.Sprintf("index %d from node %d: %v; this replica takes no more entries until its node is upgraded", at, from, err))
		}
		return false
	}
	return true
}
