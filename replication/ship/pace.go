package ship

import "time"

// pace bounds the bytes of a range's frames under way by how long the bus takes to store them. What is
// under way waits on the line before anything sent later, of this range or another: more of it than the
// line carries in a second moves nothing sooner, takes memory, and on a narrow line it lasts until the bus
// seems not to answer, so that the same bytes are sent again. Guarded by Shipper.mu.
//
// The window doubles with each round trip while it is used up and frames are stored within delayGood, and
// is halved once for a round trip above delayMost. After a failure it begins again.
type pace struct {
	window int
	// limited reports that the window was used up since it grew or shrank last.
	limited bool
	// shrunkAt is when it shrank last: what was sent before that was late for the same reason.
	shrunkAt time.Duration
}

const (
	windowLeast = 64 << 10
	delayGood   = 500 * time.Millisecond
	delayMost   = time.Second
)

// admits reports whether another frame may be sent beside some bytes.
func (p *pace) admits(flying int) bool {
	if flying >= p.window {
		p.limited = true
		return false
	}
	return true
}

// frameBytes is where a frame is cut: two at least fit the window, so that the line is not idle between
// them.
func (p *pace) frameBytes(most int) int { return min(most, p.window/2) }

// stored takes that a frame of some bytes was sent and stored.
func (p *pace) stored(bytes int, sent, now time.Duration, most int) {
	switch took := now - sent; {
	case took > delayMost && sent >= p.shrunkAt:
		p.window, p.limited, p.shrunkAt = max(p.window/2, windowLeast), false, now
	case took <= delayGood && p.limited:
		p.window = min(p.window+bytes, max(most, p.window))
	}
}

// failed takes that a frame was not stored.
func (p *pace) failed(now time.Duration) {
	p.window, p.limited, p.shrunkAt = windowLeast, false, now
}
