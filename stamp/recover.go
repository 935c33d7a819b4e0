package stamp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/replica"
)

// ErrQuorum: a range has a quorum of trusted replicas, so there is nothing to recover.
var ErrQuorum = errors.New("nothing to recover")

// Calls between the nodes of a stamp for a recovery; JSON both ways.
const (
	// surveyMethod asks a node for its node.Survey of a range.
	surveyMethod = "stamp.survey"
	// reformMethod makes a node re-form a range.
	reformMethod = "stamp.reform"
	// surveyTimeout bounds a call of surveyMethod. A node that does not answer counts as gone.
	surveyTimeout = 3 * time.Second
)

// surveyRequest and reformRequest are the questions of these methods.
type surveyRequest struct{ Range geo.RangeID }

type reformRequest struct {
	Range geo.RangeID
	From  node.Survey
	As    replica.Recovery
}

// Recovered reports to an operator what a recovery did.
type Recovered struct {
	// Survivor is the replica that the range was re-formed from.
	Survivor node.Survey
	Recovery replica.Recovery
	// Replica is the new id of the survivor.
	Replica geo.ReplicaID
	// Silent are the nodes that did not answer. They must stay dead, or be able to reach
	// the survivor before they reach each other: otherwise a quorum of the old configuration
	// among them would continue beside the survivor.
	Silent []geo.NodeID
	// Ahead is the highest index known to a replica that was not chosen, if that is above the
	// survivor's last index; otherwise 0.
	Ahead uint64
}

// Recover re-forms a range that has no quorum of trusted replicas. It takes the best replica
// that answers: the one of the latest recovery, then of the highest term and index in its log.
// With untrusted it also takes a replica that lost something it had fsynced, if no trusted one
// is left. What only the other replicas held is lost. After ErrQuorum and node.ErrNoSurvivor
// nothing changed. After an error of a survivor on another node it is unknown whether the range
// was re-formed: run Recover again.
func (s *Stamp) Recover(ctx context.Context, id geo.RangeID, untrusted bool) (Recovered, error) {
	surveys, silent, err := s.surveys(ctx, id)
	if err != nil {
		return Recovered{}, err
	}
	best, err := survivor(surveys, untrusted)
	if err != nil {
		return Recovered{}, err
	}
	last := replica.Recovery(0)
	out := Recovered{Survivor: best, Silent: silent}
	for _, v := range surveys {
		last = max(last, replica.RecoveryOf(v.Replica))
		if known := max(v.Index, v.Commit); known > best.Index {
			out.Ahead = max(out.Ahead, known)
		}
	}
	if out.Recovery, err = last.Next(best.Node); err != nil {
		return Recovered{}, err
	}
	out.Replica = out.Recovery.Members().List[0].ID
	s.o.Logger.Warn("an operator re-forms a range from one replica, accepting the loss of what the others held", "range", id,
		"survivor", best.Node, "replica", best.Replica, "trusted", best.Trusted, "index", best.Index, "term", best.Term,
		"known_committed", best.Commit, "silent_nodes", silent, "ahead", out.Ahead)
	_, err = ask[struct{}](ctx, s, best.Node, reformMethod, reformRequest{id, best, out.Recovery})
	return out, err
}

// surveys asks every node of a range for the survey of its replica. silent are the nodes that
// did not answer.
func (s *Stamp) surveys(ctx context.Context, id geo.RangeID) (answered []node.Survey, silent []geo.NodeID, err error) {
	for _, n := range s.Placed(id) {
		within, cancel := context.WithTimeout(ctx, surveyTimeout)
		v, err := ask[node.Survey](within, s, n, surveyMethod, surveyRequest{id})
		cancel()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			s.o.Logger.Warn("a node does not report its replica: taken to be gone", "range", id, "of_node", n, "error", err)
			silent = append(silent, n)
			continue
		}
		answered = append(answered, v)
	}
	return answered, silent, nil
}

// survivor chooses which replica to re-form a range from. It refuses while the trusted ones
// among those that answered are a quorum of a configuration that one of them knows.
func survivor(all []node.Survey, untrusted bool) (node.Survey, error) {
	last := replica.Recovery(0)
	for _, v := range all {
		last = max(last, replica.RecoveryOf(v.Replica))
	}
	trusted := map[geo.ReplicaID]node.Survey{}
	for _, v := range all {
		if v.Trusted && replica.RecoveryOf(v.Replica) == last {
			trusted[v.Replica] = v
		}
	}
	for _, v := range trusted {
		if v.Leads {
			return node.Survey{}, fmt.Errorf("%w: node %d leads the range; if it has lost the others it steps down within a second: try again", ErrQuorum, v.Node)
		}
		voters := v.Members.Voters()
		var there []geo.NodeID
		for _, m := range voters {
			if _, ok := trusted[m.ID]; ok {
				there = append(there, m.Node)
			}
		}
		if len(there) > len(voters)/2 {
			return node.Survey{}, fmt.Errorf("%w: nodes %v hold trusted replicas, a quorum of %d: the range answers by itself when they reach each other",
				ErrQuorum, there, len(voters))
		}
	}
	from := slices.DeleteFunc(slices.Clone(all), func(v node.Survey) bool {
		_, ok := trusted[v.Replica]
		return v.Index == 0 || !ok && (len(trusted) > 0 || !untrusted)
	})
	if len(from) == 0 {
		why := "no node that answers holds anything of the range"
		if !untrusted && len(all) > 0 {
			why = "no node that answers holds a trusted replica; --untrusted takes one that lost fsynced data"
		}
		return node.Survey{}, fmt.Errorf("%w: %s", node.ErrNoSurvivor, why)
	}
	return slices.MaxFunc(from, func(a, b node.Survey) int {
		switch {
		case a.Behind(b):
			return -1
		case b.Behind(a):
			return 1
		}
		return cmp.Compare(b.Node, a.Node)
	}), nil
}

// answerSurvey answers surveyMethod at a node.
func (s *Stamp) answerSurvey(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q surveyRequest) (node.Survey, error) {
		if n.Range(q.Range) == nil {
			return node.Survey{}, node.ErrUnreachable
		}
		return n.Survey(ctx, q.Range)
	})
}

// answerReform answers reformMethod at a node.
func (s *Stamp) answerReform(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q reformRequest) (struct{}, error) {
		if n.Range(q.Range) == nil {
			return struct{}{}, node.ErrUnreachable
		}
		return struct{}{}, n.Reform(ctx, q.Range, q.From, q.As)
	})
}
