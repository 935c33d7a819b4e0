package ship

import (
	"fmt"
	"slices"

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
	// AlarmLost: the other location lost records that it had acknowledged and that were deleted
	// here for that (R16).
	AlarmLost = "lost_acknowledged"
)

// StreamCursor is how far the other location has a stream on its replicas.
type StreamCursor struct {
	Stream geo.Stream
	// Head is zero for a stream that the other location has no cursor of.
	Head geo.Head
	// Below is not zero if the other location confirms a loss: it was answered that the stream
	// is trimmed up to this number, then confirmed its lease, and its cursor is below it.
	Below geo.Seq
	// Stop is not zero if the other location has stopped the stream for a reason that may show only there. It may
	// have a record that it cannot decode or evaluate (R11). Or this range, before it was recovered with loss, had
	// promised that it had named all up to the time of a record (R16). Stop is also set for a loss, which this
	// location may have settled since.
	Stop change.StopReason
}

// Acknowledgement is what the other location reports of its cursors in a range.
type Acknowledgement struct {
	Cursors []StreamCursor
	// Full reports that Cursors names every stream that the other location has a cursor of,
	// of the streams above After and up to UpTo. The zero stream is no bound.
	Full        bool
	After, UpTo geo.Stream
}

// proves reports whether c proves what compare found, here its head or, of a loss, the last record deleted here. A cursor
// below that one alone proves no loss: it may have been read before the one that let the record go, by a leader that was
// deposed or in a call that was delayed. So the loss has to be confirmed, unless the other location keeps its stop and this one
// does not: an answer that came late may have stopped a stream there after its fork was settled.
func (c StreamCursor) proves(reason change.StopReason, here, head geo.Head) bool {
	return reason != change.StopLost || c.Below == here.Seq || c.Stop == change.StopLost && here == head
}

// passed reports whether c proves that the other location goes on behind the record for which it stopped the stream, and
// for that this one as well (R11): a later version can decode it, or an operator let the stream go on there.
func (c StreamCursor) passed(why change.Stop) bool {
	return ranges.Resumes(why.Reason) && c.Stop == change.NotStopped && c.Head.Seq > why.There.Seq
}

// Mismatch is the answer for a stream whose cursor does not fit.
type Mismatch struct {
	Stream geo.Stream
	// Reason is change.StopForked, change.StopLost or StreamCursor.Stop; of a stream that is stopped,
	// whatever it was stopped for. If it settles a fork, Here is the base to which the other location sets its
	// cursor; with Stopped false, the settlement has ended, at our head Here or before.
	Reason change.StopReason
	// Here is our head; before a stop for a loss, up to where the stream is trimmed.
	Here geo.Head
	// Stopped reports that the stream is stopped at this end. Until then the case is not
	// proven: the other location sends the cursor again, of a loss with Below.
	Stopped bool
}

// Acknowledge takes cursors of the other location. Only this lets records leave the outbox (R14), and each is
// compared first with the hash that this range has under its number (R16). A cursor ahead of our stream, or at
// another record, is a fork. A cursor below what was deleted is a loss of the other location. Either stops the
// stream: its outbox stays as it is, for an operator to decide. A stop is proven by its commit, since a leader that
// was deposed and has not noticed is behind the other location without a fork; until then the mismatch is not
// Stopped. A stop for a record that the other location has applied since ends. The answers are in the order of
// streams.
func (s *Shipper) Acknowledge(a Acknowledgement) ([]Mismatch, error) {
	m := s.o.Range.Machine
	cursors := a.Cursors
	if a.Full {
		cursors = append(cursors[:len(cursors):len(cursors)], s.unnamed(a)...)
	}
	var out []Mismatch
	var proven []StreamCursor
	for _, c := range cursors {
		if c.Stream.Epoch.Location != s.o.Location || c.Stream.Range != s.o.Range.ID() {
			return nil, fmt.Errorf("ship: cursor of %s, which is no stream of range %d of %s", c.Stream, s.o.Range.ID(), s.o.Location)
		}
		if ended(m.Gate(c.Stream.Account), c.Stream) {
			continue
		}
		why, stopped := m.Stopped(c.Stream)
		if why.Reason.Stands() || stopped && c.Head == why.There && m.Trimmed(c.Stream) < why.Here.Seq { // The second is offered its base.
			reason := why.Reason
			if reason.Settles() {
				reason = change.StopSettling // Which side is kept is the source's alone.
			}
			out = append(out, Mismatch{c.Stream, reason, why.Here, true})
			if c.passed(why) {
				proven = append(proven, c)
			}
			continue
		}
		reason, here, err := compare(m, c)
		if err != nil {
			return nil, err
		}
		if reason == change.NotStopped {
			s.acknowledged(c, m.Trimmed(c.Stream))
			if !stopped && c.Stop.Settles() { // The base is in this chain, and its settlement has ended.
				out = append(out, Mismatch{c.Stream, c.Stop, m.Head(c.Stream), false})
			}
			continue
		}
		out = append(out, Mismatch{c.Stream, reason, here, false})
		if c.proves(reason, here, m.Head(c.Stream)) {
			proven = append(proven, c)
		}
	}
	s.commitStops(proven)
	slices.SortFunc(out, func(a, b Mismatch) int { return a.Stream.Compare(b.Stream) })
	return out, nil
}

// ended reports whether a stream has ended under the gate of its account: its outbox, and all that was known of it,
// may be gone, and decides nothing.
func ended(g change.Gate, st geo.Stream) bool {
	return g.Role == change.RolePrimary && st.Epoch.Compare(g.Epoch) < 0
}

// acknowledged records how far records may go. An older cursor takes nothing back.
func (s *Shipper) acknowledged(c StreamCursor, trimmed geo.Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Head.Seq > max(trimmed, s.acked[c.Stream].Seq) {
		s.acked[c.Stream] = c.Head
	}
}

// unnamed returns a cursor for each stream that a full set lacks though it should name it. One is a
// stream whose records were deleted here, in the account's present epoch: the receiver drops those
// of former epochs. The other is a stopped one, so that a receiver that has started is answered with
// all stops.
func (s *Shipper) unnamed(a Acknowledgement) []StreamCursor {
	m := s.o.Range.Machine
	named := make(map[geo.Stream]struct{}, len(a.Cursors))
	for _, c := range a.Cursors {
		named[c.Stream] = struct{}{}
	}
	var out []StreamCursor
	add := func(st geo.Stream) {
		if _, ok := named[st]; ok || st.Compare(a.After) <= 0 || a.UpTo != (geo.Stream{}) && st.Compare(a.UpTo) > 0 {
			return
		}
		named[st] = struct{}{}
		out = append(out, StreamCursor{Stream: st})
	}
	for st, h := range m.TrimmedHeads() {
		if g := m.Gate(st.Account); h.Seq > 0 && g.Numbered && g.Role == change.RolePrimary && g.Epoch == st.Epoch {
			add(st)
		}
	}
	for st := range m.Stops() {
		if st.Epoch.Location == s.o.Location { // Others are received here.
			add(st)
		}
	}
	return out
}

// compare compares a cursor with what this range knows of the stream: its head, the last record
// deleted, and the records between, of each of which the next one carries the hash. It returns
// change.NotStopped if the cursor fits, or why the other location has stopped the stream. A stream whose next
// record cannot be decoded here stops alone (R11). For a loss here is the last record deleted.
func compare(m *ranges.Machine, c StreamCursor) (reason change.StopReason, here geo.Head, err error) {
	at, known, err := m.OutboxAt(c.Stream, c.Head.Seq)
	here = m.Head(c.Stream)
	switch {
	case change.Undecoded(err): // The next record is what the other location cannot get.
		if c.Stop == change.StopVersion {
			return c.Stop, here, nil
		}
		return change.StopPoison, here, nil
	case err != nil:
		return change.NotStopped, here, err
	case known && (at.Hash == c.Head.Hash || plantedbugs.Planted(plantedbugs.TrimUncompared)):
		switch c.Stop {
		case change.StopPoison, change.StopVersion, change.StopForked, change.StopLost:
			return c.Stop, here, nil
		}
		return change.NotStopped, here, nil
	case known || c.Head.Seq > here.Seq:
		return change.StopForked, here, nil
	}
	return change.StopLost, m.TrimmedHead(c.Stream), nil
}

// FullClosed returns the full closed record of a range from the state of one of its replicas:
// only later commits follow what the replica has applied.
func FullClosed(l geo.Location, r *ranges.Range) *change.Closed {
	heads, t := r.Machine.Heads()
	c := &change.Closed{Origin: l, Range: r.ID(), Incarnation: r.Machine.Incarnation(), Full: true, T: t}
	c.Span, c.Descriptor = ranges.Span(r.ID())
	for st, h := range heads {
		c.Heads = append(c.Heads, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: h.Seq, Hash: h.Hash})
	}
	sortHeads(c.Heads)
	return c
}
