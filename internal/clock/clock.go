// Package clock is the only reader of the machine's clocks. All other packages take a Clock, so that
// tests and the simulator control time.
package clock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads time in two ways. Both methods may be called concurrently.
type Clock interface {
	// Now is the wall clock. It may step in either direction.
	Now() time.Time
	// Mono is a monotonic reading that counts time spent suspended (R5): a lease
	// must not outlive the sleep of a laptop. Only differences mean anything.
	Mono() time.Duration
}

// System reads the machine's clocks.
type System struct{}

// Now returns the machine's wall clock.
func (System) Now() time.Time { return time.Now() }

// Mono returns CLOCK_BOOTTIME, which counts through suspend. It is a system call of about a
// microsecond, twenty times the cost of time.Now. So callers read it once per scheduler pass and
// once per answer under a lease, and use Now for times that are only shown.
//
// The obvious replacement, the runtime's clock plus an offset that is measured now and then, would
// break R5. The runtime's clock is CLOCK_MONOTONIC, which stands still in suspend: between a resume
// and the next measurement a lease that ended hours ago would look held. Comparing with the wall
// clock would show most suspends, but the wall clock also jumps when it is set, and a clock set
// back by the length of the suspend hides it. Go's runtime does not offer CLOCK_BOOTTIME without a
// system call.
func (System) Mono() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock: CLOCK_BOOTTIME is unreadable: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// Wait waits for d of the machine's time. It returns an error if ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Runtime reads the clocks of Go's runtime, which a bubble of testing/synctest fakes. It is for tests: its monotonic
// time stands still while the machine is suspended (R5). The zero value is ready; do not copy it after first use.
type Runtime struct {
	once  sync.Once
	began time.Time
}

// Now returns the runtime's wall clock.
func (*Runtime) Now() time.Time { return time.Now() }

// Mono returns the time since its first call.
func (r *Runtime) Mono() time.Duration {
	r.once.Do(func() { r.began = time.Now() })
	return time.Since(r.began)
}

// Shifted is a Runtime with a wall clock that tests set wrong. The zero value is right.
type Shifted struct {
	Runtime
	off atomic.Int64
}

// Now returns the runtime's wall clock, off by what was set.
func (s *Shifted) Now() time.Time { return s.Runtime.Now().Add(time.Duration(s.off.Load())) }

// Shift sets how far the wall clock is ahead of the machine's.
func (s *Shifted) Shift(off time.Duration) { s.off.Store(int64(off)) }

// Manual is a Clock that tests move. Use NewManual.
type Manual struct {
	mu   sync.Mutex
	now  time.Time
	mono time.Duration
}

// NewManual returns a clock that shows now until it is moved.
func NewManual(now time.Time) *Manual { return &Manual{now: now} }

// Now returns the wall time last set.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Mono returns the sum of all Advance calls.
func (m *Manual) Mono() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mono
}

// Advance moves both clocks forward by d.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	m.mono += d
}

// Step moves only the wall clock, by d of either sign, as a clock correction does.
func (m *Manual) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
