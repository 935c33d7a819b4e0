package replica

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/state"
)

// Recovery names one re-forming of a range from a single survivor, after the quorum of
// its trusted replicas was gone (R4). It is part of the id of every replica since then,
// and so of every Raft message, of the configuration and of the identity files: replicas
// of two recoveries never take each other for members of one group, and the later one
// wins. The zero value is a range that was never re-formed.
//
//	bits of an id   63 .. 42            41 .. 32              31 .. 0
//	                recoveries so far   node that survived    replicas since then
//
// The node is a part of it so that two operators who re-form a range on two nodes at once make
// two different recoveries, of which the greater one wins.
type Recovery uint64

const (
	numberBits   = 32
	survivorBits = 10
	survivorMax  = 1<<survivorBits - 1
)

// ErrRetired: the range was re-formed without this replica, which missed it.
var ErrRetired = errors.New("replica was retired: its range was re-formed by an operator")

// ErrSurvivor: the number of a node does not fit into a Recovery.
var ErrSurvivor = fmt.Errorf("replica: only nodes 1 to %d can be the survivor of a recovery", survivorMax)

// RecoveryOf is the recovery that a replica belongs to.
func RecoveryOf(id geo.ReplicaID) Recovery { return Recovery(id >> numberBits) }

// Next is the recovery after r, from the replica on node n.
func (r Recovery) Next(n geo.NodeID) (Recovery, error) {
	if n == 0 || n > survivorMax {
		return 0, ErrSurvivor
	}
	return (r>>survivorBits+1)<<survivorBits | Recovery(n), nil
}

// None is an id of the recovery that no replica has, below the ids of all its replicas. It is
// the id of a node that knows of the recovery and has no replica in it yet.
func (r Recovery) None() geo.ReplicaID { return geo.ReplicaID(r) << numberBits }

// String is for operators.
func (r Recovery) String() string {
	if r == 0 {
		return "no recovery"
	}
	return fmt.Sprintf("recovery %d, from node %d", r>>survivorBits, r&survivorMax)
}

// EndOf returns the last entry that a replica which has applied some can keep in a recovery: that of its log if the log
// follows the state. It does not if it begins above what comes next, or has another entry where the state ends, as that of
// an untrusted replica may: a snapshot had replaced the state, and the replica was lost before it began a new log. commit is
// up to where the replica knows entries to be committed.
func EndOf(log state.RangeLog, applied geo.EntryID) (last geo.EntryID, commit uint64, err error) {
	hs, _, err := log.InitialState()
	if err != nil {
		return applied, applied.Index, err
	}
	commit = max(applied.Index, hs.GetCommit())
	first, err := log.FirstIndex()
	if err != nil {
		return applied, commit, err
	}
	end, err := log.LastIndex()
	if err != nil || first > applied.Index+1 || end <= applied.Index {
		return applied, commit, err
	}
	if term, err := log.Term(applied.Index); err != nil || term != applied.Term {
		return applied, commit, err
	}
	term, err := log.Term(end)
	return geo.EntryID{Term: term, Index: end}, commit, err
}

// Members is the configuration that a recovery begins with: the survivor alone.
func (r Recovery) Members() Members {
	first := r.None() + 1
	return Members{Next: first + 1, List: []Member{{ID: first, Node: geo.NodeID(r & survivorMax)}}}
}

// Recovery is the recovery that the configuration belongs to.
func (m Members) Recovery() Recovery { return RecoveryOf(m.Next) }

// Voters are the replicas that are no learners.
func (m Members) Voters() []Member {
	var out []Member
	for _, r := range m.List {
		if !r.Learner {
			out = append(out, r)
		}
	}
	return out
}
