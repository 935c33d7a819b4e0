package stamp

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/stamp/node"
)

const (
	// confirmedMethod asks a node whether it holds that the epochs of its location are confirmed (R21).
	confirmedMethod = "stamp.confirmed"
	// confirmedTimeout bounds such a call.
	confirmedTimeout = time.Second
)

// confirmedAnswer is the answer, in JSON.
type confirmedAnswer struct {
	Holds bool
	Above map[geo.Account]geo.Epoch
}

// Confirmed asks the nodes of the stamp that run in other processes whether one of them holds that the epochs are
// confirmed, and returns which accounts stay refused there. A node that does not answer holds nothing.
func (s *Stamp) Confirmed(ctx context.Context) (above map[geo.Account]geo.Epoch, holds bool) {
	ctx, cancel := context.WithTimeout(ctx, confirmedTimeout)
	defer cancel()
	var others []geo.NodeID
	for _, id := range s.o.Peers {
		if s.Node(id) == nil {
			others = append(others, id)
		}
	}
	answers := make(chan confirmedAnswer, len(others))
	for _, id := range others {
		go func() {
			a, _ := ask[confirmedAnswer](ctx, s, id, confirmedMethod, struct{}{})
			answers <- a
		}()
	}
	for range others { // All are awaited: each has the deadline.
		if a := <-answers; a.Holds && !holds {
			above, holds = a.Above, true
			cancel()
		}
	}
	return above, holds
}

// answerConfirmed answers confirmedMethod at a node.
func (s *Stamp) answerConfirmed(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(context.Context, *node.Node, struct{}) (confirmedAnswer, error) {
		if s.o.Fence == nil {
			return confirmedAnswer{}, nil
		}
		held := s.o.Fence.Held()
		return confirmedAnswer{s.o.Clock.Mono() < held.Until, held.Above}, nil
	})
}
