package ranges

import (
	"slices"
	"time"

	"antipode/geo"
)

// A node that is going to stop first has another node lead each range that it leads, so that writes wait for some round
// trips and not for an election timeout. So does a node whose disk is nearly full, if other nodes can take writes:
//
//	leaves ──leaveAfter──> holds commands ──nothing in flight──> asks a voter ──that one leads──> follows
//
// Commands that are evaluated before are answered as ever; those that are held when the other one leads get ErrNotLeader:
// nothing happened. If the message to the voter is lost, or it leaves too, this replica goes on to lead after an election
// timeout, without a lease (R5), and asks the next one. Once all were asked in vain it is stuck: it takes commands. Then it
// asks a replica that it has not asked as soon as that is in sync, and all again leaveAgain later: each question holds
// commands for up to an election timeout. A replica that leaves does not campaign, for itself or because it is asked to;
// one whose disk is nearly full does, since it may be the only one that can lead.

const (
	// leaveAfter is how long commands are taken after Leave: requests that were here already reach the range.
	leaveAfter = 100 * time.Millisecond
	// leaveMax is how long groups in flight are waited for. Past it their outcome is unknown to their callers.
	leaveMax = 500 * time.Millisecond
	// leaveAgain lies between the beginnings of two rounds of questions to the same replicas, but for the first: of three
	// replicas with an election timeout of 1 s commands are held for a fifth of it at most. A drain is over soon after.
	leaveAgain = 10 * time.Second
)

// Why a leader leaves.
const (
	stopReason = "because the former leader's node is going to stop"
	fullReason = "because the disk of the former leader's node is nearly full"
	// stalledReason: see replica.Stalled. It holds no commands first: they wait anyway.
	stalledReason = "because the state store of the former leader's node cannot flush or compact as fast as it is written"
)

// leaveState is what a leader that leaves remembers of a term.
type leaveState struct {
	term uint64
	// reason is why it leaves: what is below is about that.
	reason string
	// stuck: it has asked every other replica that is in sync.
	stuck bool
	// since is when it began to leave in this term, or when it last had no replica to ask; in running time.
	since time.Duration
	// asked are the nodes that were asked to lead, and again is when they may be asked once more, while it is stuck.
	asked []geo.NodeID
	again time.Duration
}

// Leave has another replica lead the range from now on, as soon as one can, and this one never again until it is opened
// again. It may be called from any goroutine, and more than once; the next pass of the scheduler begins with it.
func (r *Range) Leave() { r.leaving.Store(true) }

// Leaving reports whether Leave was called.
func (r *Range) Leaving() bool { return r.leaving.Load() }

// Stuck reports whether this replica leaves, still leads, and has asked every other one that is in sync.
func (r *Range) Stuck() bool { return r.stuck.Load() }

// SteppingDown reports whether this replica leads, leaves and is not stuck: soon another one leads, and what comes may wait
// for that.
func (r *Range) SteppingDown() bool { return r.Leading() && r.Leaving() && !r.Stuck() }

// stepDown takes the next step of a leader that leaves, and reports whether commands are held meanwhile.
func (r *Range) stepDown() (holds bool) {
	ran, l, reason, nodes := r.o.Running.Time(), &r.leave, stopReason, []geo.NodeID(nil)
	if r.Leaving() {
		nodes = r.voters()
	} else if reason, nodes = fullReason, r.replica.Cramped(); len(nodes) == 0 {
		l.since = ran
		return false
	}
	if l.term != r.term || l.reason != reason {
		*l = leaveState{term: r.term, reason: reason, since: ran}
		r.stuck.Store(false)
	}
	switch {
	case r.replica.Transferring():
		return true
	case ran-l.since < leaveAfter:
		return false
	}
	nodes = slices.DeleteFunc(nodes, func(n geo.NodeID) bool { return slices.Contains(l.asked, n) })
	to := r.replica.Heir(nodes)
	if to == 0 {
		l.since = ran
		switch {
		case !l.stuck:
			l.stuck = true
			r.stuck.Store(r.Leaving())
			l.again = ran + leaveAgain
		case ran >= l.again:
			l.asked, l.again = nil, ran+leaveAgain
		}
		return false
	}
	if len(r.inflight)+len(r.acking) > 0 && ran-l.since < leaveAfter+leaveMax {
		return true
	}
	l.asked = append(l.asked, to)
	r.transfer(nodes, reason)
	return true
}
