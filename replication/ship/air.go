package ship

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/pace"
	"antipode/stamp/ranges"
)

// air holds the frames that were built and are not known to be stored by the bus, oldest first. A
// frame goes through
//
//	waiting ──published──> flying ──stored──> gone
//	flying ──failed──> waiting
//
// A publish that failed is repeated with the same bytes, before any later frame: what the bus has
// confirmed does not cross again, and nothing is read again. A frame that the bus confirmed and lost
// all the same is a gap that the receiver pulls (R15). Guarded by Shipper.mu.
type air struct {
	frames []*flight
	bytes  int
	// window bounds what is under way within the bounds of the options.
	window pace.Window
	// probing: a publish failed, and none succeeded since; one frame at a time is tried.
	probing bool
	// retryAt is when the next attempt is due, pause how long the last one waited.
	retryAt, pause time.Duration
	// blocked: the end of a publish makes room for the next.
	blocked bool
	// err is that of the last publish that ended, since errSince.
	err      error
	errSince time.Duration
}

// flight is one frame.
type flight struct {
	data  []byte
	at    time.Duration // it was built
	sent  time.Duration // when it was published last
	ended time.Duration // when the bus answered that
	state flightState
	full  bool // the bus was full
}

type flightState byte

const (
	waiting flightState = iota
	flying
	failed
	stored
)

func (a *air) add(data []byte, now time.Duration) {
	a.frames = append(a.frames, &flight{data: data, at: now})
	a.bytes += len(data)
}

// windowLeast is the least that may be under way: two frames of a size that is worth a message.
const windowLeast = 64 << 10

// frameBytes is where a frame is cut: two at least fit the window, so that the line is not idle between
// them.
func (a *air) frameBytes(most int) int { return min(most, a.window.Bytes/2) }

// flying counts the frames under way, and their bytes.
func (a *air) flying() (frames, bytes int) {
	for _, f := range a.frames {
		if f.state == flying {
			frames++
			bytes += len(f.data)
		}
	}
	return frames, bytes
}

// answered handles the answers of the bus.
func (a *air) answered(now time.Duration, o *Options) {
	kept := a.frames[:0]
	anyStored, anyFailed, full := false, false, false
	for _, f := range a.frames {
		switch f.state {
		case stored:
			anyStored = true
			a.bytes -= len(f.data)
			a.window.Answered(len(f.data), f.sent, f.ended)
			continue
		case failed:
			f.state = waiting
			anyFailed, full = true, full || f.full
		}
		kept = append(kept, f)
	}
	clear(a.frames[len(kept):])
	a.frames = kept
	if anyStored {
		a.probing, a.pause = false, 0
	}
	if !anyFailed {
		return
	}
	a.probing = true
	a.window.Failed(o.Clock.Mono())
	if full {
		a.pause = min(max(2*a.pause, o.RetryAfter), 8*o.RetryAfter)
	} else {
		a.pause = o.RetryAfter
	}
	a.retryAt = now + a.pause
}

// next returns the frame to publish now. If there is none, wait is how long to wait before another
// may be built, zero if it may be at once.
func (a *air) next(now time.Duration, o *Options) (f *flight, wait time.Duration) {
	a.blocked = false
	for _, f = range a.frames {
		if f.state != waiting {
			continue
		}
		if now < a.retryAt {
			return nil, a.retryAt - now
		}
		if n, bytes := a.flying(); n > 0 && (a.probing || !a.window.Admits(bytes)) {
			a.blocked = true
			return nil, blockedPause
		}
		f.state, f.full, f.sent = flying, false, o.Clock.Mono()
		return f, 0
	}
	if len(a.frames) >= o.FlyingMax || a.bytes >= o.FlyingBytesMax || !a.window.Admits(a.bytes) || a.probing && len(a.frames) > 0 {
		a.blocked = true
		return nil, blockedPause
	}
	return nil, 0
}

// fly publishes the frames that wait. It returns zero if another frame may be built, and otherwise how
// long to wait.
func (s *Shipper) fly(now time.Duration) time.Duration {
	s.mu.Lock()
	s.air.answered(now, &s.o)
	s.mu.Unlock()
	for {
		s.mu.Lock()
		f, wait := s.air.next(now, &s.o)
		s.mu.Unlock()
		if f == nil {
			return wait
		}
		err := s.o.Publisher.Publish(Subject(s.o.Location, s.o.Range.ID()), f.data, func(err error) { s.landed(f, err) })
		if err == nil {
			continue
		}
		s.mu.Lock()
		f.state = waiting
		switch {
		case errors.Is(err, bus.ErrFull): // Its window is used up, also by other ranges.
			s.air.blocked = true
			wait = blockedPause
		case errors.Is(err, bus.ErrTooLarge):
			f.state = stored // The receiver pulls what it held.
		default:
			s.air.ended(err, s.o.Clock.Mono())
			s.air.retryAt = now + s.o.RetryAfter
			wait = s.o.RetryAfter
		}
		s.mu.Unlock()
		if wait > 0 {
			return wait
		}
		s.o.Logger.Error("frame too large for the stream; what it held is pulled", "range", s.o.Range.ID(), "bytes", len(f.data))
	}
}

// landed takes the answer of the bus for a frame, from any goroutine.
func (s *Shipper) landed(f *flight, err error) {
	s.mu.Lock()
	s.air.ended(err, s.o.Clock.Mono())
	f.state, f.full, f.ended = stored, false, s.o.Clock.Mono()
	if err != nil && !errors.Is(err, bus.ErrTooLarge) {
		f.state, f.full = failed, errors.Is(err, bus.ErrFull)
	}
	wake := s.air.blocked || err != nil
	s.mu.Unlock()
	if wake {
		s.Wake()
	}
}

// Subject is the stream subject of a source range.
func Subject(l geo.Location, r geo.RangeID) string {
	svc := ranges.Service(r)
	return "geo." + string(l) + "." + svc.String() + "." + rangeToken(r)
}

func rangeToken(r geo.RangeID) string {
	const digits = "0123456789"
	if r < 10 {
		return digits[r : r+1]
	}
	return rangeToken(r/10) + digits[r%10:r%10+1]
}
