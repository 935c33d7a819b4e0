package ship

import (
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/outbox"
)

// hold is a stream that is held back until the payload of its next record is at the other location.
// Its records stay in the outbox alone, so that it takes no memory:
//
//	waiting ──room──> pushing ──payload there, or lost──> late ──next payload──> waiting
//	late ──all that is named is in frames──> no longer held
//	waiting or late ──the other location cannot take it──> withheld ──it can──> waiting
type hold struct {
	stream geo.Stream
	sent   geo.Seq // the last record in a frame
	// next is the record whose payload waits or is being pushed, zero while the hold is late. Guarded by
	// Shipper.mu.
	next geo.Seq
	// free is the record whose payload is there. If its push failed the record is sent without, and
	// the receiver fetches the payload itself.
	free geo.Seq
}

// holds are the streams of a range that are held back.
type holds struct {
	// of is changed under Shipper.mu.
	of   map[geo.Stream]*hold
	late []*hold
	// withheld are looked at again at lookAt.
	withheld []*hold
	lookAt   time.Duration
	// small and large each have their room, so that no small payload waits until a large one is there.
	small, large pushLine
}

// SmallPush is the most that the payload of a record may have, in bytes, to count as small.
const SmallPush = 1 << 20

// pushLine are the streams whose next payload is small, or large.
type pushLine struct {
	waiting []*hold
	pushing int   // pushes that have not ended, those begun in an earlier term included
	bytes   int64 // of their payload
}

func (l *pushLine) room(o *Options, bytes int64) bool {
	return l.pushing < o.PushesMax && (l.pushing == 0 || l.bytes+bytes <= o.PushBytesMax)
}

// push is a push of one record's payload.
type push struct {
	of    *hold
	in    *pushLine
	seq   geo.Seq
	bytes int64
}

// hold holds a stream back from r on.
func (s *Shipper) hold(r *outbox.Record) {
	h := &hold{stream: r.Stream, sent: s.at(r.Stream).Seq}
	h.next = h.sent + 1
	s.mu.Lock()
	s.holds.of[r.Stream] = h
	s.mu.Unlock()
	s.enlist(h)
	s.startPushes()
}

// enlist puts a held stream where it waits for room for its next payload, if it is not withheld.
func (s *Shipper) enlist(h *hold) {
	if s.withheld(h.stream) {
		s.withhold(h)
		return
	}
	l := &s.holds.small
	if bytesOf(s.nextPayload(h)) > SmallPush {
		l = &s.holds.large
	}
	l.waiting = append(l.waiting, h)
}

func bytesOf(refs []extent.Ref) (n int64) {
	for _, ref := range refs {
		n += int64(ref.Length)
	}
	return n
}

// startPushes pushes payload of held streams, as far as there is room.
func (s *Shipper) startPushes() {
	s.startPushesOf(&s.holds.small)
	s.startPushesOf(&s.holds.large)
}

func (s *Shipper) startPushesOf(l *pushLine) {
	for len(l.waiting) > 0 && l.pushing < s.o.PushesMax {
		h := l.waiting[0]
		if s.withheld(h.stream) {
			l.waiting = l.waiting[1:]
			s.withhold(h)
			continue
		}
		refs := s.nextPayload(h)
		p := push{of: h, in: l, seq: h.sent + 1, bytes: bytesOf(refs)}
		if !l.room(&s.o, p.bytes) {
			return
		}
		l.waiting = l.waiting[1:]
		if len(refs) == 0 {
			s.late(h)
			continue
		}
		l.pushing++
		l.bytes += p.bytes
		s.o.Pusher.Push(refs, func(error) {
			s.mu.Lock()
			s.arrived = append(s.arrived, p)
			s.mu.Unlock()
			s.Wake()
		})
	}
}

// late lets the records of a held stream go up to its next payload.
func (s *Shipper) late(h *hold) {
	s.mu.Lock()
	h.next = 0
	s.mu.Unlock()
	s.holds.late = append(s.holds.late, h)
}

// Ready returns those of the records that follow each other from a number on that the other location may
// have now. It pulls the records of a stream that is behind its head; the payload of a held one is on its
// way already, and would cross once more. Nor are those that are withheld.
func (s *Shipper) Ready(st geo.Stream, from geo.Seq, records [][]byte) [][]byte {
	if s.withheld(st) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds.of[st]
	if h == nil || h.next == 0 || from+geo.Seq(len(records)) <= h.next {
		return records
	}
	return records[:max(from, h.next)-from]
}

// nextPayload returns the payload of the next record of a held stream. There is none if the receiver
// got the record in another way, or the stream fell out.
func (s *Shipper) nextPayload(h *hold) []extent.Ref {
	if s.fellOut(h.stream) {
		return nil
	}
	records, err := s.read(h.stream, h.sent+1, 1)
	if err != nil || len(records) == 0 {
		return nil // fillLate finds out why.
	}
	rec, err := change.ParseRecord(records[0])
	if err != nil {
		return nil
	}
	return rec.Chunks
}

// endPushes makes the streams late whose payload has arrived.
func (s *Shipper) endPushes() {
	s.mu.Lock()
	arrived := s.arrived
	s.arrived = nil
	s.mu.Unlock()
	for _, p := range arrived {
		p.in.pushing--
		p.in.bytes -= p.bytes
		if s.holds.of[p.of.stream] == p.of { // Not of an earlier term.
			p.of.free = p.seq
			s.late(p.of)
		}
	}
	s.startPushes()
}

// fillLate takes into f the records of streams whose payload has arrived. They are named already.
func (s *Shipper) fillLate(f *frame) error {
	for len(s.holds.late) > 0 && f.size < f.sizeMax {
		h := s.holds.late[0]
		if s.withheld(h.stream) {
			s.holds.late = s.holds.late[1:]
			s.withhold(h)
			continue
		}
		end := s.at(h.stream).Seq
		records, err := s.read(h.stream, h.sent+1, min(shareMax, f.sizeMax-f.size))
		if err != nil {
			return err
		}
		if n := s.trimmed(h.stream); len(records) == 0 && n <= h.sent {
			return fmt.Errorf("ship: the outbox of %s lacks #%d of %d", h.stream, h.sent+1, end)
		} else if len(records) == 0 {
			h.sent = n // The receiver has them.
		}
		if s.fellOut(h.stream) {
			h.sent, records = end, nil
		}
		next, full := s.fillLateFrom(f, h, records, end)
		if full {
			return nil
		}
		if h.sent >= end {
			s.mu.Lock()
			delete(s.holds.of, h.stream)
			s.mu.Unlock()
		} else if !next {
			continue
		} else {
			s.mu.Lock()
			h.next = h.sent + 1
			s.mu.Unlock()
			s.enlist(h)
		}
		s.holds.late = s.holds.late[1:]
		s.startPushes()
	}
	return nil
}

// fillLateFrom takes records of a held stream, up to end. It stops before a record that names the next
// payload, and before one that f has no room for.
func (s *Shipper) fillLateFrom(f *frame, h *hold, records [][]byte, end geo.Seq) (payload, full bool) {
	for _, b := range records {
		var r outbox.Record
		if err := recordOf(b, &r); err != nil {
			s.unreadable(h.stream, h.sent+1, b, err)
			h.sent = end
			return false, false
		}
		switch {
		case r.Seq > end:
			return false, false
		case r.Chunks && r.Seq != h.free:
			return true, false
		case !f.room(len(b)):
			return false, true
		}
		f.Records = append(f.Records, b)
		f.size += len(b)
		h.sent = r.Seq
	}
	return false, false
}
