package protocol

import (
	"math"
	"sync"
	"time"

	"antipode/internal/clock"
)

// rateOver is over how much time of waiting a sender's rate is taken.
const rateOver = time.Second

// pace is how fast the bytes of a body came, by the time in which they were waited for. Methods may be called concurrently.
type pace struct {
	mu sync.Mutex // guards what follows
	// since is when the read under way began; zero if none is.
	since time.Time
	// waited and brought are of the interval that will be the next lastRate, in bytes per
	// second; none was taken before the first is over.
	waited   time.Duration
	brought  int64
	lastRate float64
}

func newPace() pace { return pace{lastRate: math.Inf(1)} }

// begin records that a read begins, and returns when.
func (p *pace) begin() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = clock.System{}.Now() // Sockets live in the machine's time.
	return p.since
}

// took records what a read brought, and returns how long it took.
func (p *pace) took(n int) (waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited = clock.System{}.Now().Sub(p.since)
	p.since = time.Time{}
	p.waited += waited
	p.brought += int64(n)
	if p.waited >= rateOver {
		p.lastRate = float64(p.brought) / p.waited.Seconds()
		p.waited, p.brought = 0, 0
	}
	return waited
}

// rate is what came lately, in bytes per second of waiting for it; infinite where it was not waited for long enough to know.
func (p *pace) rate() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := p.waited
	if !p.since.IsZero() {
		waited += clock.System{}.Now().Sub(p.since)
	}
	if waited < rateOver {
		return p.lastRate
	}
	return float64(p.brought) / waited.Seconds()
}
