package location

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// A process that is going to stop drains first: it is not ready any more, so that load balancers and gateways send it
// nothing new; other nodes take over what it leads; then the requests under way end. Only then the location stops.

// Draining reports whether the process is going to stop.
func (l *Location) Draining() bool { return l.draining.Load() }

// stepDownMax bounds how long other nodes may take to lead: two questions that are in vain, with elections after them.
const stepDownMax = 5 * time.Second

// stepDown has other nodes lead what this process leads, and returns what is still led here when they do not.
func (l *Location) stepDown(ctx context.Context) []geo.RangeID {
	ctx, cancel := context.WithTimeout(ctx, stepDownMax)
	defer cancel()
	s, err := l.Stamp()
	if err != nil {
		return nil
	}
	return s.StepDown(ctx)
}

// notLed says of each range that does not do without this process that it is led here still, or by nobody.
func (l *Location) notLed(here []geo.RangeID) (left []string) {
	s, err := l.Stamp()
	if err != nil {
		return nil
	}
	for _, r := range l.o.Route.Ranges() {
		what := "the " + r.Service.String() + " range"
		if slices.Contains(here, r.ID) {
			left = append(left, what+" is still led here: no other replica in sync takes it, so that it has no leader until the others elect one")
		} else if _, known := s.LeaderNode(r.ID); !known {
			left = append(left, what+" has no leader, as far as this node knows: it takes no writes until one is elected")
		}
	}
	return left
}

// Drain makes the location ready to be stopped: it is not ready from now on, other nodes lead its ranges, and once notice
// has passed the front end takes no new connection and the requests under way end. When ctx ends it returns what is left.
// Stop must follow.
func (s *Server) Drain(ctx context.Context, notice time.Duration) (left []string) {
	f := s.listeners.Load()
	if f == nil {
		return nil
	}
	s.o.Location.draining.Store(true)
	var moved sync.WaitGroup
	var here []geo.RangeID
	moved.Go(func() { here = s.o.Location.stepDown(ctx) })
	_ = clock.Wait(ctx, notice) // What is left is the same if ctx ends first.
	moved.Wait()
	left = s.o.Location.notLed(here)
	if n := f.Drain(ctx); n > 0 {
		left = append(left, fmt.Sprintf("requests had not ended and are broken off, with an outcome that is unknown to their clients: %d", n))
	}
	return left
}
