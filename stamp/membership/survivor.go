package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/replica"
)

var (
	// ErrQuorum: a range has a quorum of trusted replicas, so there is nothing to recover.
	ErrQuorum = errors.New("nothing to recover")
	// ErrNoSurvivor: there is no replica that the range could be re-formed from.
	ErrNoSurvivor = errors.New("no survivor")
	// ErrChanged: a replica is not as its survey shows it, or the survey is old.
	ErrChanged = errors.New("changed meanwhile: try again")
)

// ReformWithin is how old a survey may be, on the clock of the node that gave it, when the range is re-formed
// from it. What it shows of the others may not hold any more: nodes that were silent may be back, and a quorum.
const ReformWithin = 10 * time.Second

// Survey is what a node reports of its replica of a range before a recovery. Nodes exchange it
// as JSON: a field keeps its name.
type Survey struct {
	Node    geo.NodeID
	Replica geo.ReplicaID
	// Trusted: the replica may vote. Otherwise Why is what is wrong with it.
	Trusted bool
	Why     string `json:",omitempty"`
	Leads   bool
	// Follows: a message of the range's leader came within an election timeout.
	Follows bool `json:",omitempty"`
	// Recovering: the node re-forms the range from the replica at this moment.
	Recovering bool `json:",omitempty"`
	// Taken and Ran are when the survey was given, in the node's monotonic time, which counts suspension (R5), and in
	// its running time, which leaves out its pauses. Zero from a version without them.
	Taken, Ran time.Duration `json:",omitempty"`
	// Term and Index are those of the last entry that the replica could keep. Commit is the
	// index up to which it knows entries to be committed.
	Term, Index, Commit uint64
	Members             replica.Members
}

// Behind reports whether o is the better survivor: the one of the later recovery, then of the
// higher term and index, as in Raft's elections.
func (s Survey) Behind(o Survey) bool {
	return cmp.Or(
		cmp.Compare(s.Members.Recovery(), o.Members.Recovery()), cmp.Compare(s.Term, o.Term), cmp.Compare(s.Index, o.Index),
	) < 0
}

// MayReform returns ErrChanged unless the range may still be re-formed from the replica that the survey from is about.
// now is its present survey, ours the recovery that it belongs to, and as the one to come. pauseMax is how long the
// process may have stood still since: meanwhile it could receive nothing of a leader, and whatever the others sent may wait in its
// sockets, or in the inbox of a pass that has begun.
func MayReform(from, now Survey, ours, as replica.Recovery, pauseMax time.Duration) error {
	age := now.Taken - from.Taken
	switch {
	case now.Leads, now.Follows, now.Replica != from.Replica, now.Trusted != from.Trusted, now.Behind(from), as <= ours:
	case from.Taken != 0 && (age < 0 || age > ReformWithin || age-(now.Ran-from.Ran) > pauseMax):
	default:
		return nil
	}
	return fmt.Errorf("the replica on node %d %w", now.Node, ErrChanged)
}

// Same reports whether two surveys are of one replica with the same log.
func (s Survey) Same(o Survey) bool {
	return s.Node == o.Node && s.Replica == o.Replica && s.Trusted == o.Trusted && s.Term == o.Term && s.Index == o.Index
}

// Survivor chooses the replica from which an operator re-forms a range (R4), of those of the
// nodes that answered, and returns the recovery that follows all that they know. It takes the
// best trusted replica. If none is trusted it takes, with untrusted, the best of the others:
// one that lost something it had fsynced. ErrQuorum: the trusted ones are a quorum, of a
// configuration that one of them knows, or one of them leads or follows a leader. ErrNoSurvivor: there is none.
func Survivor(all []Survey, untrusted bool) (best Survey, as replica.Recovery, err error) {
	last := replica.Recovery(0)
	for _, v := range all {
		last = max(last, replica.RecoveryOf(v.Replica))
	}
	for _, v := range all {
		if v.Recovering && replica.RecoveryOf(v.Replica) == last {
			return Survey{}, 0, fmt.Errorf("%w: node %d re-forms the range already: wait until that has ended", ErrChanged, v.Node)
		}
	}
	// A replica of an earlier recovery was retired, whether it knows that or not.
	trusted := slices.DeleteFunc(slices.Clone(all), func(v Survey) bool {
		return !v.Trusted || replica.RecoveryOf(v.Replica) != last
	})
	if err := checkNoQuorum(trusted); err != nil {
		return Survey{}, 0, err
	}
	from := trusted
	if len(trusted) == 0 && untrusted {
		from = all
	}
	from = slices.DeleteFunc(slices.Clone(from), func(v Survey) bool { return v.Index == 0 })
	if len(from) == 0 {
		why := "no node that answers holds anything of the range"
		if !untrusted && len(all) > 0 {
			why = "no node that answers holds a trusted replica; --untrusted takes one that lost fsynced data"
		}
		return Survey{}, 0, fmt.Errorf("%w: %s", ErrNoSurvivor, why)
	}
	best = slices.MaxFunc(from, func(a, b Survey) int {
		switch {
		case a.Behind(b):
			return -1
		case b.Behind(a):
			return 1
		}
		return cmp.Compare(b.Node, a.Node)
	})
	if as, err = last.Next(best.Node); err != nil {
		return Survey{}, 0, err
	}
	return best, as, nil
}

// checkNoQuorum returns ErrQuorum if a range that has these trusted replicas answers without a
// recovery, now or when they reach each other.
func checkNoQuorum(trusted []Survey) error {
	for _, v := range trusted {
		if v.Leads {
			return fmt.Errorf("%w: node %d leads the range; if it has lost the others it steps down within a second: try again", ErrQuorum, v.Node)
		}
		if v.Follows {
			return fmt.Errorf("%w: node %d follows a leader of the range, which does not answer here; if that is gone node %d notices within some seconds: try again",
				ErrQuorum, v.Node, v.Node)
		}
		voters := v.Members.Voters()
		var there []geo.NodeID
		for _, m := range voters {
			if slices.ContainsFunc(trusted, func(o Survey) bool { return o.Replica == m.ID }) {
				there = append(there, m.Node)
			}
		}
		if len(there) > len(voters)/2 {
			return fmt.Errorf("%w: nodes %v hold trusted replicas, a quorum of %d: the range answers by itself when they reach each other",
				ErrQuorum, there, len(voters))
		}
	}
	return nil
}
