package ship

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
)

// View is what the shipper of a range has under way.
type View struct {
	// Leading reports that this node leads the range; nothing else is known otherwise.
	Leading bool
	// Frames are built and not confirmed by the bus, the oldest for Oldest.
	Frames int
	Oldest time.Duration
	// Err is the error of the last publish, for Failing, nil after a success. Full: the bus is full.
	Err     error
	Failing time.Duration
	Full    bool
	// Streams are those of one account.
	Streams map[geo.Stream]StreamView
}

// StreamView is one stream.
type StreamView struct {
	// Built is the last record in a frame; those of held streams are named there alone. Acked is how far the
	// other location has the stream on its replicas.
	Built, Acked geo.Seq
	// Held: the stream is held back until payload is at the other location.
	Held bool
	// Stopped is why the stream may not go on, as this end has it.
	Stopped change.StopReason
}

// View returns what is under way, and of the streams of an account how far each is. It may be called
// concurrently with Step.
func (s *Shipper) View(a geo.Account) View {
	now := s.o.Clock.Mono()
	m := s.o.Range.Machine
	s.mu.Lock()
	defer s.mu.Unlock()
	out := View{Leading: s.named != nil, Frames: len(s.air.frames), Streams: map[geo.Stream]StreamView{}}
	if !out.Leading {
		return out
	}
	if len(s.air.frames) > 0 {
		out.Oldest = now - s.air.frames[0].at
	}
	if s.air.err != nil {
		out.Err, out.Failing, out.Full = s.air.err, now-s.air.errSince, errors.Is(s.air.err, bus.ErrFull)
	}
	for st, head := range s.named {
		if st.Account == a && !s.forgotten(st) {
			why, _ := m.Stopped(st)
			v := StreamView{Built: head.Seq, Acked: max(s.acked[st].Seq, m.Trimmed(st)), Held: s.holds.of[st] != nil, Stopped: why.Reason}
			if why.Reason == change.StopBudget {
				v.Acked = why.There.Seq // What is deleted was not acknowledged.
			}
			out.Streams[st] = v
		}
	}
	return out
}

// ended takes the outcome of a publish.
func (a *air) ended(err error, now time.Duration) {
	if err != nil && a.err == nil {
		a.errSince = now
	}
	a.err = err
}
