package stamp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/node"
	"antipode/stamp/replica"
)

// Calls between the nodes of a stamp for a recovery; JSON both ways.
const (
	// surveyMethod asks a node for its membership.Survey of a range.
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
	From  membership.Survey
	As    replica.Recovery
	Floor geo.Timestamp
}

// Recovered reports to an operator what a recovery did.
type Recovered struct {
	// Survivor is the replica that the range was re-formed from.
	Survivor membership.Survey
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
	// Floor is the time that the range's times are above from now on.
	Floor geo.Timestamp
	// Others are the replicas that answered and were not chosen.
	Others []membership.Survey
}

// Floor returns the time that the times of a recovered range must be above: the other location has
// received up to there. Nil means that they need not be checked.
type Floor func(ctx context.Context) (geo.Timestamp, error)

// Recover re-forms a range that has no quorum of trusted replicas. It takes the best replica
// that answers: the one of the latest recovery, then of the highest term and index in its log.
// With untrusted it also takes a replica that lost something it had fsynced, if no trusted one
// is left. What only the other replicas held is lost. The range gives no time at or before floor from
// then on: otherwise what it commits next could be older than times that the other location has been
// promised to be complete (R6). floor is called once the survivor is chosen; its error is returned. It may take its
// time, so all nodes are asked again after it. The survivor re-forms nothing if it follows a leader, or if
// membership.ReformWithin has passed since its survey, as after a pause of a process: nodes that were silent may be back.
// After the error of floor, membership.ErrQuorum, membership.ErrNoSurvivor and membership.ErrChanged nothing changed.
// After another error of a survivor on another node it is unknown whether the range was re-formed: run Recover again.
func (s *Stamp) Recover(ctx context.Context, id geo.RangeID, untrusted bool, floor Floor) (Recovered, error) {
	found, err := s.PlanRecovery(ctx, id, untrusted, floor)
	if err != nil {
		return Recovered{}, err
	}
	best := found.Survivor
	s.o.Logger.Warn("an operator re-forms a range from one replica, accepting the loss of what the others held", "range", id,
		"survivor", best.Node, "replica", best.Replica, "trusted", best.Trusted, "index", best.Index, "term", best.Term,
		"known_committed", best.Commit, "silent_nodes", found.Silent, "ahead", found.Ahead, "floor", found.Floor)
	_, err = ask[struct{}](ctx, s, best.Node, reformMethod, reformRequest{id, best, found.Recovery, found.Floor})
	return found, err
}

// PlanRecovery returns what Recover would do now, or why it would refuse. It changes nothing.
func (s *Stamp) PlanRecovery(ctx context.Context, id geo.RangeID, untrusted bool, floor Floor) (Recovered, error) {
	found, err := s.survey(ctx, id, untrusted)
	if err != nil {
		return Recovered{}, err
	}
	var above geo.Timestamp
	if floor != nil {
		if above, err = floor(ctx); err != nil {
			return Recovered{}, err
		}
		before := found
		if found, err = s.survey(ctx, id, untrusted); err != nil {
			return Recovered{}, err
		}
		if !found.Survivor.Same(before.Survivor) { // What the other location has of it may have changed too.
			return Recovered{}, fmt.Errorf("the replicas of range %d %w", id, membership.ErrChanged)
		}
	}
	found.Floor = above
	return found, nil
}

// survey asks every node of a range for the survey of its replica, all at once, and chooses the survivor. What it returns
// has no Floor yet.
func (s *Stamp) survey(ctx context.Context, id geo.RangeID, untrusted bool) (out Recovered, err error) {
	placed := s.Placed(id)
	surveys, errs := make([]membership.Survey, len(placed)), make([]error, len(placed))
	var all sync.WaitGroup
	for i, n := range placed {
		all.Go(func() {
			within, cancel := context.WithTimeout(ctx, surveyTimeout)
			defer cancel()
			surveys[i], errs[i] = ask[membership.Survey](within, s, n, surveyMethod, surveyRequest{id})
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	var answered []membership.Survey
	for i, n := range placed {
		if errs[i] != nil {
			s.o.Logger.Warn("a node does not report its replica: taken to be gone", "range", id, "of_node", n, "error", errs[i])
			out.Silent = append(out.Silent, n)
			continue
		}
		answered = append(answered, surveys[i])
	}
	if out.Survivor, out.Recovery, err = membership.Survivor(answered, untrusted); err != nil {
		return out, err
	}
	out.Replica = out.Recovery.Members().List[0].ID
	for _, v := range answered {
		if v.Node != out.Survivor.Node {
			out.Others = append(out.Others, v)
		}
		if known := max(v.Index, v.Commit); known > out.Survivor.Index {
			out.Ahead = max(out.Ahead, known)
		}
	}
	return out, nil
}

// answerSurvey answers surveyMethod at a node.
func (s *Stamp) answerSurvey(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q surveyRequest) (membership.Survey, error) {
		if n.Range(q.Range) == nil {
			return membership.Survey{}, node.ErrUnreachable
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
		return struct{}{}, n.Reform(ctx, q.Range, q.From, q.As, q.Floor)
	})
}
