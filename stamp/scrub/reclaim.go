package scrub

import (
	"context"
	"time"
)

// Reclaiming the room of wiped rows writes their neighbours again, so that there is a rest between two spans, and a long
// one once nothing waits: what is wiped meanwhile is reclaimed together.
const (
	reclaimRest  = time.Second
	reclaimAgain = 2 * time.Minute
)

// reclaimStep gives the room of a span of wiped rows back to the disk.
func (s *Scrubber) reclaimStep(ctx context.Context) time.Duration {
	if s.o.Space == nil {
		return reclaimAgain
	}
	worked, err := s.o.Space.Reclaim(ctx)
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Warn("cannot reclaim the room of deleted rows; they take it until the state store compacts them", "error", err)
	}
	if !worked {
		return reclaimAgain
	}
	return reclaimRest
}
