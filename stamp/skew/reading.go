package skew

import (
	"time"

	"antipode/internal/clock"
)

// Reading is one look at both clocks of a node.
type Reading struct {
	// Wall has no monotonic part: differences of two of them are of the wall clock.
	Wall time.Time
	Mono time.Duration
	// Err bounds how long after Mono the wall clock was read.
	Err time.Duration
}

// readMax is how long a reading may take before it is tried again.
const readMax = 10 * time.Millisecond

// ReadSince reads the wall clock, and the monotonic one only once more if it was read at began, a
// moment ago: Mono costs a system call.
func ReadSince(c clock.Clock, began time.Duration) Reading {
	r := Reading{Mono: began, Wall: c.Now().Round(0)}
	if r.Err = c.Mono() - began; r.Err <= readMax {
		return r
	}
	return Read(c)
}

// Read reads both clocks. If the caller stood still in between it reads them again: the two would
// not belong together.
func Read(c clock.Clock) Reading {
	var best Reading
	for i := range 3 {
		r := Reading{Mono: c.Mono(), Wall: c.Now().Round(0)}
		r.Err = c.Mono() - r.Mono
		if i == 0 || r.Err < best.Err {
			best = r
		}
		if best.Err <= readMax {
			break
		}
	}
	return best
}

// base is what the wall clock showed at the monotonic time 0, if it had not been set since.
func (r Reading) base() time.Time { return r.Wall.Add(-r.Mono) }
