package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/replication/bus"
	replicationlink "antipode/replication/link"
	"antipode/replication/pair"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// errLink: the far range has no leader, or no node there has the chunk. errCut: the link is cut.
var (
	errLink = errors.New("sim: no node of the other location can answer")
	errCut  = fmt.Errorf("sim: %w", replicationlink.ErrCut)
)

// link is the way from a location to the other: receive.Source and
// ship.PayloadPusher over the event queue, cut with the link.
type link struct {
	s   *Sim
	far *location
}

// call runs f at the far end after a delay, and returns its answer after another delay. A cut at
// either moment ends the call.
func call[T any](l link, done func(T, error), f func() (T, error)) {
	s := l.s
	s.after(s.linkDelay(), func() {
		var none T
		if err := s.callsFail(); err != nil {
			done(none, err)
			return
		}
		out, err := f()
		s.after(s.linkDelay(), func() {
			if err := s.callsFail(); err != nil {
				done(none, err)
				return
			}
			done(out, err)
		})
	})
}

// callsFail returns why no call crosses the link, nil if calls do.
func (s *Sim) callsFail() error {
	if s.callsCut {
		return errCut
	}
	return s.callsRefused
}

// cross waits until a chunk is through the link.
func (l link) cross(ref extent.Ref, then func()) {
	if l.s.huge[ref.ID] {
		l.s.after(hugeWait, func() { l.cross(ref, then) })
		return
	}
	then()
}

// hugeWait is how often a chunk that takes for ever tries to get through.
const hugeWait = 100 * time.Millisecond

// Records implements receive.Source.
func (l link) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	l.s.counts.Pull++
	l.s.event("%s pull %s from %d", l.far.name, st, from)
	call(l, done, func() ([][]byte, error) {
		if r := l.far.Leader(st.Range); r != nil {
			out, err := r.Machine.Outbox(st, from, bytesMax)
			if sh := l.far.shipper(st.Range); sh != nil {
				out = sh.Ready(st, from, out)
			}
			return l.s.poisoned.damage(st, from, out), err
		}
		return nil, errLink
	})
}

// Closed implements receive.Source.
func (l link) Closed(id geo.RangeID, done func(*change.Closed, error)) {
	l.s.counts.FullPull++
	l.s.event("%s pull closed r%d", l.far.name, id)
	call(l, done, func() (*change.Closed, error) {
		if sh := l.far.shipper(id); sh != nil {
			return sh.Full()
		}
		return nil, errLink
	})
}

// Acknowledge implements receive.Source.
func (l link) Acknowledge(id geo.RangeID, cursors map[geo.Stream]receive.Cursor, full bool, done func([]receive.Mismatch, error)) {
	call(l, done, func() ([]receive.Mismatch, error) {
		sh := l.far.shipper(id)
		if sh == nil {
			return nil, errLink
		}
		a := pair.Acknowledgement(cursors, full)
		slices.SortFunc(a.Cursors, func(x, y ship.StreamCursor) int { return x.Stream.Compare(y.Stream) })
		mismatches, err := sh.Acknowledge(a)
		l.far.wake()
		return pair.Mismatches(mismatches), err
	})
}

// Chunk implements receive.Source.
func (l link) Chunk(ref extent.Ref, done func([]byte, error)) {
	answer := func(data []byte, err error) {
		if err == nil {
			l.s.counts.ChunkPulled++
			l.s.event("%s pulled chunk %s", l.far.far.name, ref.ID)
		}
		done(data, err)
	}
	l.cross(ref, func() {
		call(l, answer, func() ([]byte, error) {
			if l.s.chance(l.s.rates.pullLose) {
				return nil, errChunkLost
			}
			return l.far.readChunk(ref)
		})
	})
}

// Push implements ship.PayloadPusher: one chunk after the other.
func (l link) Push(refs []extent.Ref, done func(error)) {
	if len(refs) == 0 {
		done(nil)
		return
	}
	answer := func(_ struct{}, err error) {
		if err != nil {
			l.s.counts.PushLost++
			l.s.event("%s push of chunk %s lost", l.far.far.name, refs[0].ID)
			done(err)
			return
		}
		l.s.counts.ChunkPushed++
		l.Push(refs[1:], done)
	}
	l.cross(refs[0], func() {
		call(l, answer, func() (struct{}, error) {
			if l.s.chance(l.s.rates.pushLose) {
				return struct{}{}, errChunkLost
			}
			data, err := l.far.far.readChunk(refs[0])
			if err == nil {
				err = l.far.PutChunk(context.Background(), refs[0], data)
			}
			return struct{}{}, err
		})
	})
}

// linkedPublisher passes publishes through the link to the bus at the far end,
// where each is decided after the link's delay.
type linkedPublisher struct {
	bus.Publisher
	s *Sim
	// far is the location whose bus it is.
	far *location
}

// Publish implements bus.Publisher.
func (p linkedPublisher) Publish(subject string, data []byte, done func(error)) error {
	if p.s.busCut {
		return bus.ErrUnavailable
	}
	if why := p.s.callsRefused; why != nil {
		return fmt.Errorf("%w: %w", bus.ErrUnavailable, why)
	}
	if err := p.Publisher.Publish(subject, data, done); err != nil {
		return err
	}
	p.s.after(p.s.linkDelay(), func() {
		p.far.bus.Step()
		p.far.wakeReceivers()
	})
	return nil
}

// linkDelay is how long one way over the link takes.
func (s *Sim) linkDelay() time.Duration {
	if s.stalled {
		return s.between(20*time.Millisecond, 300*time.Millisecond)
	}
	return s.lag + s.between(time.Millisecond, 8*time.Millisecond)
}
