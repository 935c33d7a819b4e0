package ship

import (
	"errors"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// stopsPerGroup bounds the streams that one group stops. A receiver that lost everything has as many
// as there are streams; it sends the cursors of those that are not stopped again.
const stopsPerGroup = 1000

// commitStops commits that streams may not go on, or may again, one group at a time.
func (s *Shipper) commitStops(proven []StreamCursor) {
	s.mu.Lock()
	if len(proven) == 0 || s.stops.committing {
		s.mu.Unlock()
		return
	}
	s.stops.committing = true
	s.mu.Unlock()
	cmd := &stopCommand{m: s.o.Range.Machine, cursors: proven[:min(len(proven), stopsPerGroup)]}
	s.o.Range.Submit(cmd, func(err error) {
		s.mu.Lock()
		s.stops.committing = false
		s.mu.Unlock()
		switch {
		case err == nil:
			s.report(cmd.staged)
			for _, st := range cmd.resumed {
				s.o.Logger.Info("stream goes on: the other location has applied the record for which it was stopped", "stream", st)
			}
		case errors.Is(err, kv.ErrUnknown):
			s.mu.Lock()
			s.stops.unsure = cmd.staged
			s.mu.Unlock()
			s.Wake()
		}
	})
}

// unreadable stops a stream whose record n cannot be decoded here, with the reason (R11). If the stop is not
// committed, as while others are, the next cursor of the receiver stops the stream.
func (s *Shipper) unreadable(st geo.Stream, n geo.Seq, record []byte, err error) {
	s.o.Logger.Error("record of the outbox is not readable; its stream stops", "stream", st, "seq", n, "error", err)
	before, ok, err := s.o.Range.Machine.OutboxAt(st, n-1)
	if err == nil && !ok {
		return // It was trimmed meanwhile.
	}
	if err != nil { // It has no hash to compare with.
		before.Head = geo.Head{Seq: n - 1}
	}
	s.commitStops([]StreamCursor{{Stream: st, Head: before.Head, Stop: change.Undecodable(record)}})
}

// report raises the alarms of stops that this process committed: one for each, since a stop that is
// there is not committed again.
func (s *Shipper) report(list []stopped) {
	for _, st := range list {
		alarm := st.why.Reason.String()
		switch st.why.Reason {
		case change.StopForked:
			alarm = AlarmFork
		case change.StopLost:
			alarm = AlarmLost
		}
		s.o.Alarm(alarm)
		s.o.Logger.Error("stream stopped; an operator has to decide", "stream", st.stream, "reason", st.why.Reason,
			"here", st.why.Here.Seq, "there", st.why.There.Seq)
	}
}

// reportUnsure raises the alarms of stops of an unknown outcome once they are in the state, known by
// their time; also at a replica that leads no more. A leader that was deposed and had not noticed
// staged them without a fork, and they never come: an alarm means a stop.
func (s *Shipper) reportUnsure() {
	s.mu.Lock()
	var here []stopped
	s.stops.unsure = slices.DeleteFunc(s.stops.unsure, func(st stopped) bool {
		why, ok := s.o.Range.Machine.Stopped(st.stream)
		if ok && why == st.why {
			here = append(here, st)
		}
		return ok
	})
	s.mu.Unlock()
	s.report(here)
}

// stops is what a shipper knows of its stops until they are in the state. The shipper's mu guards it.
type stops struct {
	committing bool
	// unsure are those of an unknown outcome, stopsPerGroup at most.
	unsure []stopped
}

// stopped is a stop that a group stages.
type stopped struct {
	stream geo.Stream
	why    change.Stop
}

// stopCommand stops the streams whose cursors do not fit, in every replica, and ends the stops that the other location has
// passed. Its evaluation compares them again, so a leader that was deposed stops nothing: what it evaluated is never
// committed.
type stopCommand struct {
	m       *ranges.Machine
	cursors []StreamCursor
	staged  []stopped
	// resumed are the streams whose stops end.
	resumed []geo.Stream
}

// Reclaims implements ranges.Reclaimer: a stop needs almost no room, and must not wait for it.
func (*stopCommand) Reclaims() {}

// Evaluate implements ranges.Command.
func (c *stopCommand) Evaluate(tx *ranges.Tx) error {
	c.staged, c.resumed = nil, nil
	for _, at := range c.cursors {
		why, _ := tx.Stopped(at.Stream)
		if why.Reason.Stands() && !at.passed(why) || ended(tx.Gate(at.Stream.Account), at.Stream) {
			continue
		}
		reason, here, err := compare(c.m, at)
		if err != nil {
			return err
		}
		if why.Reason.Stands() {
			if reason == change.NotStopped {
				tx.Stop(at.Stream, change.Stop{})
				c.resumed = append(c.resumed, at.Stream)
			}
			continue
		}
		if reason == change.NotStopped || !at.proves(reason, here, c.m.Head(at.Stream)) {
			continue
		}
		tx.Stop(at.Stream, change.Stop{Reason: reason, Here: c.m.Head(at.Stream), There: at.Head})
		why, _ = tx.Stopped(at.Stream) // With its time.
		c.staged = append(c.staged, stopped{at.Stream, why})
	}
	return nil
}
