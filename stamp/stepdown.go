package stamp

import (
	"context"
	"time"

	"antipode/geo"
)

// stepDownPoll is the time between two looks of StepDown.
const stepDownPoll = 10 * time.Millisecond

// StepDown has other nodes lead what the nodes of this process lead, since they are going to stop; from then on these lead
// nothing any more until they are started again. It returns once they lead nothing, or only ranges of which no other
// replica takes the leadership, or when ctx ends, with the ranges that are still led here.
func (s *Stamp) StepDown(ctx context.Context) (left []geo.RangeID) {
	for _, id := range s.o.Route.IDs() {
		for _, p := range s.o.Peers {
			if n := s.Node(p); n != nil && n.Range(id) != nil {
				n.Range(id).Leave()
			}
		}
	}
	for {
		left, waits := s.leads()
		if !waits {
			return left
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(stepDownPoll):
		}
	}
}

// leads returns the ranges that are led here, and whether one of them may soon be led elsewhere.
func (s *Stamp) leads() (led []geo.RangeID, waits bool) {
	for _, id := range s.o.Route.IDs() {
		for _, p := range s.o.Peers {
			n := s.Node(p)
			if n == nil || n.Range(id) == nil || n.Range(id).Leader() != p {
				continue
			}
			led = append(led, id)
			waits = waits || !n.Range(id).Stuck()
		}
	}
	return led, waits
}
