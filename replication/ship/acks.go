package ship

import (
	"errors"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// Alarm reasons of the source side.
const (
	// AlarmFork: the other location is ahead of this one, or holds another record
	// under the same number (R16).
	AlarmFork = "fork"
)

// StreamCursor is how far the other location has a stream on its replicas.
type StreamCursor struct {
	Stream geo.Stream
	Head   geo.Head
}

// errUnresolved is returned while a cursor does not fit our stream and it is unknown whether the
// stream forked.
var errUnresolved = errors.New("ship: a cursor does not fit; it is compared again under a lease")

// Acknowledge takes cursors of the other location. Only this lets records leave
// the outbox (R14). A cursor that does not fit our stream is a fork: the stream's
// outbox stays as it is, for an operator to decide (R16). The forked streams are
// returned. A leader that was deposed and has not noticed is behind the other location
// without a fork, so each is compared again under a lease first: until then the answer
// is an error, and the caller sends the cursors again.
func (s *Shipper) Acknowledge(cursors []StreamCursor) (forked []geo.Stream, err error) {
	odd := s.takeAcks(cursors)
	s.mu.Lock()
	var unresolved []StreamCursor
	for _, c := range odd {
		if _, known := s.forked[c.Stream]; known {
			forked = append(forked, c.Stream)
		} else {
			unresolved = append(unresolved, c)
		}
	}
	s.mu.Unlock()
	if len(unresolved) == 0 {
		return forked, nil
	}
	s.o.Range.Confirm(func(err error) {
		if err == nil {
			s.resolve(unresolved)
		}
	})
	return nil, errUnresolved
}

// resolve finds the forks among cursors that did not fit, under the lease of this leader.
func (s *Shipper) resolve(cursors []StreamCursor) {
	heads, _ := s.o.Range.Machine.Heads()
	for _, c := range s.takeAcks(cursors) {
		s.mu.Lock()
		s.forked[c.Stream] = struct{}{}
		s.mu.Unlock()
		s.o.Alarm(AlarmFork)
		s.o.Logger.Error("streams forked; an operator has to pick a side", "stream", c.Stream,
			"here", heads[c.Stream].Seq, "there", c.Head.Seq)
	}
}

// takeAcks takes the cursors that fit our streams and returns the others.
func (s *Shipper) takeAcks(cursors []StreamCursor) (odd []StreamCursor) {
	heads, _ := s.o.Range.Machine.Heads()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cursors {
		own := heads[c.Stream]
		if c.Head.Seq > own.Seq || c.Head.Seq == own.Seq && c.Head.Hash != own.Hash {
			odd = append(odd, c)
			continue
		}
		if c.Head.Seq > s.acked[c.Stream].Seq {
			s.acked[c.Stream] = c.Head
		}
	}
	return odd
}

// trim proposes the deletion of acknowledged records.
func (s *Shipper) trim(now time.Duration) {
	if now < s.trimAt {
		return
	}
	s.trimAt = now + s.o.TrimEvery
	s.mu.Lock()
	if s.trimming {
		s.mu.Unlock()
		return
	}
	var due trimCommand
	for st, h := range s.acked {
		if h.Seq > s.o.Range.Machine.Trimmed(st) {
			due = append(due, StreamCursor{st, h})
		}
	}
	s.trimming = len(due) > 0
	s.mu.Unlock()
	if len(due) == 0 {
		return
	}
	slices.SortFunc(due, func(a, b StreamCursor) int { return a.Stream.Compare(b.Stream) })
	s.o.Range.Submit(due, func(error) {
		// After success or failure the next round handles what is left.
		s.mu.Lock()
		s.trimming = false
		s.mu.Unlock()
	})
}

// trimCommand deletes acknowledged records in every replica.
type trimCommand []StreamCursor

// Reclaims implements ranges.Reclaimer.
func (trimCommand) Reclaims() {}

// Evaluate implements ranges.Command.
func (c trimCommand) Evaluate(tx *ranges.Tx) error {
	for _, t := range c {
		upTo := t.Head.Seq
		if plantedbugs.Planted(plantedbugs.TrimUnacknowledged) {
			upTo += 5
		}
		tx.Trim(t.Stream, upTo)
	}
	return nil
}

// FullClosed returns the full closed record of a range from the state of one of its replicas:
// only later commits follow what the replica has applied.
func FullClosed(l geo.Location, r *ranges.Range) *change.Closed {
	heads, t := r.Machine.Heads()
	c := &change.Closed{Origin: l, Range: r.ID(), Full: true, T: t}
	for st, h := range heads {
		c.Heads = append(c.Heads, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: h.Seq})
	}
	sortHeads(c.Heads)
	return c
}
