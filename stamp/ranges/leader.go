package ranges

import (
	"time"

	"antipode/geo"
)

// recordLeader records which node leads, 0 for none known.
func (r *Range) recordLeader(id geo.NodeID) {
	r.leader.Store(uint64(id))
	if id != 0 {
		r.leaderless.Store(0)
	} else if r.leaderless.Load() == 0 {
		r.leaderless.Store(int64(r.o.Running.Time()))
	}
}

// Leaderless returns for how long this replica has known no leader, in the running time of
// its node: while the process stood still it could not learn of a leader. lasts is negative
// while a replica that was just opened is given time to join. ok is false while the replica
// knows a leader, which may be a former one whose silence it has not noticed yet.
func (r *Range) Leaderless() (lasts time.Duration, ok bool) {
	since := time.Duration(r.leaderless.Load())
	return r.o.Running.Time() - since, since != 0
}

// NoRoom reports whether this replica leads and takes no writes but deletions, because its disk is nearly full or that of
// a replica which it needs.
func (r *Range) NoRoom() bool { return r.noRoom.Load() }
