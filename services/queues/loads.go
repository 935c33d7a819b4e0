package queues

import (
	"sync"
	"time"
)

// loadsMax bounds the subqueues whose commands are counted; the commands of others are not, until the next window.
const loadsMax = 10_000

// loads counts the commands of a window, by subqueue. Commands that a range evaluates come from the front end of the
// node that leads it, so that its leader sees all of them. The zero value has counted none. Methods may be called
// concurrently.
type loads struct {
	mu sync.Mutex
	of map[Subqueue]load
}

// add counts a command.
func (l *loads) add(at Subqueue, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.of[at]
	if !known && len(l.of) >= loadsMax {
		return
	}
	if l.of == nil {
		l.of = map[Subqueue]load{}
	}
	n.rate++
	if busy {
		n.throttled++
	}
	l.of[at] = n
}

// take returns what was counted since the last take, which is some time ago, and begins again.
func (l *loads) take(window, took time.Duration) map[Subqueue]load {
	l.mu.Lock()
	of := l.of
	l.of = nil
	l.mu.Unlock()
	for at, n := range of {
		of[at] = load{rate: n.rate / took.Seconds(), throttled: n.throttled * float64(window) / float64(took)}
	}
	return of
}
