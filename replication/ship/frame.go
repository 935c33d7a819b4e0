package ship

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// send publishes what is due and returns when to step again.
func (s *Shipper) send(now time.Duration) time.Duration {
	for {
		if wait := s.fly(now); wait > 0 {
			return wait
		}
		if wait := s.linger(now); wait > 0 {
			return wait
		}
		s.repeatFull(now)
		built, err := s.build()
		if err != nil {
			s.o.Logger.Error("cannot read the outbox; the range stands still until it can", "range", s.o.Range.ID(), "error", err)
			return s.o.RetryAfter
		}
		if !built {
			return min(idle, max(s.trimAt-now, s.o.Linger))
		}
	}
}

// repeatFull makes the next closed record a full one if this leader knows of no cursor for what it
// shipped a while ago. The receiver then reports all its cursors: it reports only what moves, and it may
// have lost the frames that show another leader. While nothing is acknowledged, as on a
// slow link, the pause doubles.
func (s *Shipper) repeatFull(now time.Duration) {
	if now < s.fullAt {
		return
	}
	s.fullPause = min(max(2*s.fullPause, fullPauseLeast), fullPauseMost)
	s.fullAt = now + s.fullPause
	s.mu.Lock()
	defer s.mu.Unlock()
	for st, head := range s.named {
		if head.Seq > 0 && s.holds.of[st] == nil && s.forgotten(st) {
			s.forget(st)
		} else if head.Seq > max(s.acked[st].Seq, s.o.Range.Machine.Trimmed(st)) {
			s.fullNext = true
			return
		}
	}
	s.fullPause = 0
}

// firstOwn makes the first closed record of a time of this leader's own a full one. On disks that were set back a range has
// forgotten what it shipped, and the full closed record that it begins with has a time that the receiver is past. The one
// of its own time is past all that the receiver holds, and shows what is gone (R16).
func (s *Shipper) firstOwn() {
	if !s.shown && s.upTo > s.ledFrom {
		s.fullNext, s.shown = true, true
	}
}

// linger returns how long the records of the queue wait for more of them.
func (s *Shipper) linger(now time.Duration) time.Duration {
	if s.lost || s.backlog != nil || len(s.holds.late) > 0 || s.queue.records == 0 || s.queue.records >= s.o.FrameBytesMax {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, _ := s.air.flying(); n == 0 {
		return 0
	}
	return s.o.Linger - (now - s.queue.since)
}

// frame is a frame that is being filled.
type frame struct {
	change.Frame
	size, sizeMax int
}

// headBytes is about what a head of a closed record takes.
const headBytes = 64

func (f *frame) room(size int) bool { return f.size == 0 || f.size+size <= f.sizeMax }

// build makes the next frame, and reports whether there was something to send. Each frame ends with
// a closed record whose T is the time of the last event taken (R12).
//
// Everything of the range up to T is in this frame or an earlier one, or acknowledged, or held back;
// and the heads name all of it. A head may be of a later time than T, as where records were
// acknowledged that no frame of this leader had: the receiver then waits for more than T requires, so
// that Last Sync Time is late. A head of an earlier time would be false: the receiver would call T
// complete while a record at or before T is missing. Only the leader's full closed record names what
// was acknowledged before this leader began. The receiver has that, so a later closed record may leave
// it out.
func (s *Shipper) build() (built bool, err error) {
	s.mu.Lock()
	sizeMax := s.air.frameBytes(s.o.FrameBytesMax)
	s.mu.Unlock()
	f := frame{Frame: change.Frame{Origin: s.o.Location, Range: s.o.Range.ID()}, sizeMax: sizeMax}
	err = s.fill(&f)
	news := (s.upTo > s.closedT || s.fullNext && s.upTo > 0) && s.o.Range.Machine.Numbered()
	if len(f.Records) == 0 && !news {
		return false, err
	}
	s.firstOwn()
	if s.nameEarly() {
		f.Closed = s.closedRecord()
	} else {
		f.Closed = s.unjoined()
	}
	data := change.AppendFrame(nil, &f.Frame)
	if f.Closed.Full && len(data) > s.o.Publisher.MaxPayload() {
		f.Closed = s.unjoined()
		data = change.AppendFrame(nil, &f.Frame)
	}
	s.fullNext = false
	clear(s.changed)
	s.mu.Lock()
	s.closedT, s.closedWall = f.Closed.T, f.Closed.Wall
	s.air.add(data, s.o.Clock.Mono())
	s.mu.Unlock()
	return true, err
}

// fill takes what follows into f: first what was held back, then the backlog, then the queue.
func (s *Shipper) fill(f *frame) error {
	if err := s.fillLate(f); err != nil {
		return err
	}
	for s.lost || s.backlog != nil {
		if s.backlog == nil {
			if err := s.openBacklog(); err != nil {
				return err
			}
		}
		for {
			r, ok, err := s.backlog.peek()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if !s.admit(f, &event{Record: r}) {
				return nil
			}
			if err := s.backlog.pop(); err != nil {
				return err
			}
		}
		s.upTo = max(s.upTo, s.backlog.t)
		s.backlog = nil
	}
	for len(s.queue.events) > 0 && s.admit(f, &s.queue.events[0]) {
		s.queue.pop()
	}
	return nil
}

// admit takes the next event of the range: its record goes into f, or is held back, or is named alone since
// its stream fell out. It returns false if f is full.
func (s *Shipper) admit(f *frame, r *event) bool {
	if r.Seq > s.at(r.Stream).Seq {
		size := 0
		if _, named := s.changed[r.Stream]; !named {
			size = headBytes
		}
		h, fellOut := s.holds.of[r.Stream], s.fellOut(r.Stream)
		holds := h == nil && !fellOut && (r.Chunks || s.withheld(r.Stream))
		held := h != nil || fellOut || holds
		if !held {
			size += change.FrameRecordBytes + len(r.Bytes)
		}
		if !f.room(size) {
			return false
		}
		f.size += size
		switch {
		case holds:
			s.hold(&r.Record)
		case held:
		case len(r.Bytes) > s.o.Publisher.MaxPayload()-f.sizeMax:
			s.o.Logger.Error("record too large for the stream; it is pulled", "stream", r.Stream, "seq", r.Seq, "bytes", len(r.Bytes))
		default:
			f.Records = append(f.Records, r.Bytes)
		}
		s.name(r.Stream, geo.Head{Seq: r.Seq, Hash: r.Hash})
		if held && plantedbugs.Planted(plantedbugs.HeldUnnamed) {
			delete(s.changed, r.Stream)
		}
	}
	if s.upTo = max(s.upTo, r.CommitTime); r.wall != 0 {
		s.wall = r.wall // Not the greatest: the clock may have been set back since.
	}
	return true
}

// name makes head the last record of a stream that closed records name.
func (s *Shipper) name(st geo.Stream, head geo.Head) {
	s.mu.Lock()
	s.named[st] = head
	s.mu.Unlock()
	s.changed[st] = struct{}{}
}

// closedRecord returns the closed record that ends a frame: of everything taken so far, the records of
// held streams included (R12).
func (s *Shipper) closedRecord() *change.Closed {
	c := s.closed(s.closedT, s.upTo, s.wall)
	if plantedbugs.Planted(plantedbugs.ClosedAheadOfFrame) {
		c.T = s.o.Range.Machine.AppliedState().Last
	}
	if !s.fullNext {
		for st := range s.changed {
			c.Heads = append(c.Heads, headOf(st, s.named[st]))
		}
		sortHeads(c.Heads)
		return c
	}
	s.mu.Lock() // Acknowledgements come meanwhile.
	s.whole(c)
	s.mu.Unlock()
	if len(change.AppendClosed(nil, c)) > s.o.FullBytesMax {
		return s.unjoined()
	}
	return c
}

// unjoined stands for a full closed record that is too large for a frame. It promises nothing to a
// receiver that is behind T, which pulls the full one in pages: see Full.
func (s *Shipper) unjoined() *change.Closed { return s.closed(s.upTo, s.upTo, s.wall) }

// closed returns a closed record without heads. It has a wall only where its time is ahead of that: elsewhere the time
// promises as much.
func (s *Shipper) closed(t0, t, wall geo.Timestamp) *change.Closed {
	r := s.o.Range
	c := &change.Closed{Origin: s.o.Location, Range: r.ID(), Incarnation: r.Machine.Incarnation(), T0: t0, T: t}
	if wall != 0 && t.AheadOf(wall.Time()) {
		c.Wall = wall
	}
	return c
}

// whole makes c a full closed record: with the heads of all streams that the range knows. What was pulled ahead of the frames
// is named too: the receiver compares it with its cursor. The caller holds mu.
func (s *Shipper) whole(c *change.Closed) {
	c.Full, c.T0 = true, 0
	c.Span, c.Descriptor = ranges.Span(c.Range)
	c.Heads = make([]change.StreamHead, 0, len(s.named))
	for st, head := range s.named {
		if at := s.acked[st]; at.Seq > head.Seq {
			head = at
		}
		if head.Seq > 0 && !s.forgotten(st) {
			c.Heads = append(c.Heads, headOf(st, head))
		}
	}
	sortHeads(c.Heads)
}

func headOf(st geo.Stream, h geo.Head) change.StreamHead {
	return change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: h.Seq, Hash: h.Hash}
}

// Full returns the full closed record as of the last frame, for a receiver whose chain of closed
// records broke. The record as of now would do too. But while a backlog drains it would put every
// stream behind its last head, and Last Sync Time would stand still until all is there.
func (s *Shipper) Full() (*change.Closed, error) {
	s.mu.Lock()
	if s.closedT > 0 {
		defer s.mu.Unlock()
		c := s.closed(0, s.closedT, s.closedWall)
		s.whole(c)
		return c, nil
	}
	s.mu.Unlock()
	if !s.o.Range.Leading() {
		return nil, fmt.Errorf("range %d: %w", s.o.Range.ID(), ranges.ErrNotLeader)
	}
	return FullClosed(s.o.Location, s.o.Range), nil
}

// sortHeads fixes the order, so that equal closed records have equal bytes.
func sortHeads(heads []change.StreamHead) {
	slices.SortFunc(heads, func(a, b change.StreamHead) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), a.Epoch.Compare(b.Epoch), cmp.Compare(a.Lane, b.Lane))
	})
}
