package location

import (
	"sync"
	"time"

	"antipode/geo"
)

// speeds keep the last samples of the Last Sync Time of each service, to measure how fast it moves. The methods
// may be called concurrently.
type speeds struct {
	mu sync.Mutex
	of map[serviceKey][]speedSample // oldest first, speedSamples at most
}

type speedSample struct {
	at time.Duration // on the monotonic clock
	t  geo.Timestamp
}

const (
	// speedSamples is how many samples are kept: 5 s of them.
	speedSamples = 11
	// speedLeast is the least time between the first and the last sample for a speed to be known.
	speedLeast = 2 * time.Second
)

// add keeps the samples of all services. Those that are missing have no Last Sync Time now and are
// forgotten.
func (s *speeds) add(now time.Duration, samples map[serviceKey]geo.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[serviceKey][]speedSample, len(samples))
	for k, t := range samples {
		list := append(s.of[k], speedSample{now, t})
		next[k] = list[max(0, len(list)-speedSamples):]
	}
	s.of = next
}

// speed is how many seconds the Last Sync Time of a service moved on per second, over the samples; not known
// before there are some.
func (s *speeds) speed(k serviceKey) (v float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.of[k]
	if len(list) == 0 {
		return 0, false
	}
	first, last := list[0], list[len(list)-1]
	took := last.at - first.at
	if took < speedLeast {
		return 0, false
	}
	return last.t.Time().Sub(first.t.Time()).Seconds() / took.Seconds(), true
}
