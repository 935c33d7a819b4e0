package ship

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
)

// sendQueue publishes frames from the queue and returns when to step again.
func (s *Shipper) sendQueue(now time.Duration) time.Duration {
	for len(s.queue) > 0 || s.upTo > 0 && (s.upTo > s.closedT || s.fullNext) && s.numbered() {
		s.mu.Lock()
		flying := s.flying
		s.mu.Unlock()
		if flying > 0 && len(s.queue) > 0 && s.queued < change.FrameBytesMax && now-s.since < s.o.Linger {
			return s.o.Linger - (now - s.since)
		}
		if !s.publishFromQueue() {
			return blockedPause
		}
	}
	return min(idle, max(s.trimAt-now, s.o.Linger))
}

// numbered reports whether any account of the range is shipped from here. A range without such an
// account sends no closed records (R12).
func (s *Shipper) numbered() bool {
	for _, g := range s.o.Range.Machine.Gates() {
		if g.Numbered && g.Role == change.RolePrimary {
			return true
		}
	}
	return false
}

// publishFromQueue publishes one frame from the queue. Only the frame with the last record taken
// carries a closed record: in an earlier frame it would cover records that follow.
func (s *Shipper) publishFromQueue() bool {
	f := change.Frame{Origin: s.o.Location, Range: s.o.Range.ID()}
	size, n := 0, 0
	for n < len(s.queue) && (n == 0 || size+len(s.queue[n].Bytes) <= change.FrameBytesMax) {
		size += len(s.queue[n].Bytes)
		f.Records = append(f.Records, s.queue[n].Bytes)
		n++
	}
	if n == len(s.queue) {
		f.Closed = s.closedRecord()
	}
	if !s.publish(&f) {
		return false
	}
	s.queue = s.queue[n:]
	s.queued -= size
	if len(s.queue) == 0 {
		s.queue, s.queued = nil, 0
	}
	if f.Closed != nil {
		s.closedT, s.fullNext = f.Closed.T, false
		clear(s.changed)
	}
	return true
}

// closedRecord returns the closed record for everything taken from the leader so far, the records
// of held streams included (R12).
func (s *Shipper) closedRecord() *change.Closed {
	c := &change.Closed{Origin: s.o.Location, Range: s.o.Range.ID(), T0: s.closedT, T: s.upTo}
	if s.fullNext {
		c.Full, c.T0 = true, 0
		for st := range s.sent {
			c.Heads = append(c.Heads, s.streamHead(st))
		}
		for st := range s.held {
			if _, sent := s.sent[st]; !sent {
				c.Heads = append(c.Heads, s.streamHead(st))
			}
		}
	} else {
		for st := range s.changed {
			c.Heads = append(c.Heads, s.streamHead(st))
		}
	}
	sortHeads(c.Heads)
	return c
}

func (s *Shipper) streamHead(st geo.Stream) change.StreamHead {
	seq := s.sent[st]
	if held := s.held[st]; len(held) > 0 {
		seq = held[len(held)-1].Seq
	}
	return change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: seq}
}

// sortHeads fixes the order, so that equal closed records have equal bytes.
func sortHeads(heads []change.StreamHead) {
	slices.SortFunc(heads, func(a, b change.StreamHead) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), a.Epoch.Compare(b.Epoch), cmp.Compare(a.Lane, b.Lane))
	})
}

// publish gives a frame to the bus.
func (s *Shipper) publish(f *change.Frame) bool {
	data := change.AppendFrame(nil, f)
	s.mu.Lock()
	s.flying++
	s.blocked = false
	s.mu.Unlock()
	err := s.o.Publisher.Publish(Subject(s.o.Location, f.Range), data, func(err error) {
		s.mu.Lock()
		s.flying--
		s.failed = s.failed || err != nil
		wake := s.blocked || err != nil
		s.mu.Unlock()
		if wake {
			s.Wake()
		}
	})
	if err == nil {
		return true
	}
	s.mu.Lock()
	s.flying--
	s.blocked = errors.Is(err, bus.ErrFull)
	s.failed = s.failed || !s.blocked
	s.mu.Unlock()
	return false
}

// Subject is the stream subject of a source range.
func Subject(l geo.Location, r geo.RangeID) string {
	svc := geo.Service(r)
	return "geo." + string(l) + "." + svc.String() + "." + rangeToken(r)
}

func rangeToken(r geo.RangeID) string {
	const digits = "0123456789"
	if r < 10 {
		return digits[r : r+1]
	}
	return rangeToken(r/10) + digits[r%10:r%10+1]
}
