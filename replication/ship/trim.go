package ship

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
)

// trim proposes the deletion of acknowledged records, of as many as a group may delete; the next
// round follows at once while there are more. It walks the streams that moved since they were
// trimmed, which are those in acked.
func (s *Shipper) trim(now time.Duration) {
	if now < s.trimAt {
		return
	}
	s.mu.Lock()
	if s.trimming {
		s.mu.Unlock()
		return
	}
	due, more := s.due()
	s.trimming = len(due) > 0
	s.mu.Unlock()
	if s.trimAt = now; !more {
		s.trimAt += s.o.TrimEvery
	}
	if len(due) == 0 {
		return
	}
	due.read(s.o.Range.Machine)
	s.o.Range.Submit(due, func(error) {
		// After success or failure the next round handles what is left.
		s.mu.Lock()
		s.trimming = false
		s.mu.Unlock()
		if more {
			s.Wake()
		}
	})
}

// due returns what one group may delete, in the order of streams, and whether there is more. It
// forgets the streams that are done or stopped. The caller holds mu.
func (s *Shipper) due() (due trimCommand, more bool) {
	m := s.o.Range.Machine
	for st, h := range s.acked {
		if why, _ := m.Stopped(st); why.Reason.Stands() || h.Seq <= s.trimmed(st) {
			delete(s.acked, st)
			continue
		}
		due = append(due, StreamCursor{Stream: st, Head: h})
	}
	slices.SortFunc(due, func(a, b StreamCursor) int { return a.Stream.Compare(b.Stream) })
	return due.group(m.Trimmed)
}

// group returns what one group may delete of it, and whether there is more. trimmed returns up to where a stream is deleted.
func (c trimCommand) group(trimmed func(geo.Stream) geo.Seq) (due trimCommand, more bool) {
	rows := geo.Seq(0)
	for i, t := range c {
		if rows >= outbox.TrimRowsMax || i == trimStreamsMax {
			return c[:i], true
		}
		rows += t.Head.Seq - trimmed(t.Stream)
	}
	return c, rows > outbox.TrimRowsMax
}

// trimStreamsMax bounds the streams of a group: the scheduler reads a row of each.
const trimStreamsMax = 512

// trimCommand deletes acknowledged records in every replica.
type trimCommand []StreamCursor

// read reads what the evaluation will, so that the scheduler does not wait for the disk. After a long backlog these rows are
// in no cache. Errors are for the evaluation.
func (c trimCommand) read(m *ranges.Machine) {
	for _, t := range c {
		_, _, _ = m.OutboxAt(t.Stream, t.Head.Seq)
	}
}

// Reclaims implements ranges.Reclaimer.
func (trimCommand) Reclaims() {}

// Evaluate implements ranges.Command.
func (c trimCommand) Evaluate(tx *ranges.Tx) error {
	for _, t := range c {
		upTo := t.Head.Seq
		if plantedbugs.Planted(plantedbugs.TrimUnacknowledged) {
			upTo += 5
		}
		if err := tx.Trim(t.Stream, upTo); err != nil {
			return err
		}
	}
	return nil
}
