package ship

import (
	"math"
	"time"

	"antipode/geo"
	"antipode/stamp/outbox"
)

// queue holds what the leader applied and no frame has taken yet, in commit order. An event without a
// number is a closed time alone.
type queue struct {
	events []event
	// records are the bytes of the records, size those of the events in memory.
	records, size int
	since         time.Duration // when the oldest record entered
}

// event is a record, or a closed time alone, of a group that was evaluated when the clock showed wall: see outbox.Added.
type event struct {
	outbox.Record
	wall geo.Timestamp
}

// eventBytes is about what an event takes beside its record.
const eventBytes = 160

func (q *queue) push(r event, now time.Duration) {
	if q.records == 0 {
		q.since = now
	}
	if n := len(q.events); r.Seq == 0 && n > 0 && q.events[n-1].Seq == 0 {
		q.events[n-1] = r // The later closed time promises more.
		return
	}
	q.events = append(q.events, r)
	q.records += len(r.Bytes)
	q.size += len(r.Bytes) + eventBytes
}

func (q *queue) pop() {
	n := len(q.events[0].Bytes)
	q.records -= n
	q.size -= n + eventBytes
	q.events[0] = event{}
	q.events = q.events[1:]
	if len(q.events) == 0 {
		q.events = nil
	}
}

// take queues what the leader applied, in commit order. Past the bound everything that waits is
// dropped: a slow link costs disk, never memory (invariant 8).
func (s *Shipper) take(added []outbox.Added, now time.Duration) {
	if s.lost {
		return // It is in the outbox, behind what was lost.
	}
	for _, a := range added {
		for _, r := range a.Records {
			s.queue.push(event{r, a.Wall}, now)
		}
		if a.Closed != 0 {
			s.queue.push(event{outbox.Record{CommitTime: a.Closed}, a.Wall}, now)
		}
		if s.queue.size > s.o.QueueBytesMax {
			s.drop()
			return
		}
	}
}

// drop empties the queue. What follows is read from the outbox.
func (s *Shipper) drop() {
	s.mu.Lock()
	s.dropped.Times++
	s.dropped.Bytes += int64(s.queue.records)
	for _, e := range s.queue.events {
		if e.Seq != 0 {
			s.dropped.Records++
		}
	}
	s.mu.Unlock()
	s.queue, s.lost = queue{}, true
}

// at returns the last record of a stream that is in a frame, or held back.
func (s *Shipper) at(st geo.Stream) geo.Head { return s.named[st] }

// ackedUpTo is how far the other location has a stream on its replicas: what is trimmed, or acked and
// not yet trimmed.
func (s *Shipper) ackedUpTo(st geo.Stream) geo.Head {
	trimmed := s.o.Range.Machine.TrimmedHead(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	if acked := s.acked[st]; acked.Seq > trimmed.Seq {
		return acked
	}
	return trimmed
}

// trimmed is the last number that left the outbox of a stream with records. It is above all of them if the range has
// forgotten the stream.
func (s *Shipper) trimmed(st geo.Stream) geo.Seq {
	trimmed, head := s.o.Range.Machine.Ends(st)
	if head.Seq == 0 {
		return allTrimmed
	}
	return trimmed.Seq
}

// allTrimmed is above every number.
const allTrimmed = geo.Seq(math.MaxInt64)

// forgotten reports whether the range knows nothing of a stream that had records: it is of a former epoch (R13).
func (s *Shipper) forgotten(st geo.Stream) bool { return s.o.Range.Machine.Head(st).Seq == 0 }

// forget drops what is known of a stream that the range has forgotten. The caller holds mu.
func (s *Shipper) forget(st geo.Stream) {
	delete(s.named, st)
	delete(s.changed, st)
	delete(s.early, st)
	delete(s.acked, st)
}
