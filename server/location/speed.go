package location

import (
	"sync"
	"time"
)

// speeds keep the last samples of numbers that grow, to measure how fast they do. The methods may be called
// concurrently.
type speeds[K comparable] struct {
	// keep is how many samples are kept of each.
	keep int
	mu   sync.Mutex
	of   map[K][]speedSample // oldest first; guarded by mu
}

type speedSample struct {
	at    time.Duration // on the monotonic clock
	value int64
}

// speedLeast is the least time between the first and the last sample for a speed to be known.
const speedLeast = 2 * time.Second

// add keeps the samples of all numbers. Those that are missing are not known now and are forgotten.
func (s *speeds[K]) add(now time.Duration, samples map[K]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[K][]speedSample, len(samples))
	for k, v := range samples {
		list := append(s.of[k], speedSample{now, v})
		next[k] = list[max(0, len(list)-s.keep):]
	}
	s.of = next
}

// speed is by how much a number grew per second, over the samples; not known before there are some.
func (s *speeds[K]) speed(k K) (v float64, known bool) {
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
	return float64(last.value-first.value) / took.Seconds(), true
}
