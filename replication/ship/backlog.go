package ship

import (
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// sendBacklog publishes what is in the outbox between sent and target, and reports whether all of
// it was published. Streams are merged by commit time, so that frames keep the order they would
// have had.
func (s *Shipper) sendBacklog() bool {
	m := &merge{machine: s.o.Range.Machine}
	for st, head := range s.target {
		if s.sent[st] < head.Seq && s.held[st] == nil {
			m.add(st, s.sent[st]+1, head.Seq)
		}
	}
	for {
		f := change.Frame{Origin: s.o.Location, Range: s.o.Range.ID()}
		sent, err := m.fill(&f)
		if err != nil {
			s.o.Logger.Error("cannot read the outbox; the stream stands until it can", "range", s.o.Range.ID(), "error", err)
			return false
		}
		if len(f.Records) == 0 {
			break
		}
		if !s.publish(&f) {
			return false
		}
		for st, n := range sent {
			s.sent[st] = n
		}
	}
	s.catchUp = false
	s.upTo = max(s.upTo, s.targetT)
	for st, head := range s.target {
		// This includes streams whose records were all acknowledged before: their heads belong in
		// the full closed record.
		s.sent[st] = max(s.sent[st], head.Seq)
	}
	s.target = nil
	return true
}

// merge reads several streams of the outbox in the order of commit times.
type merge struct {
	machine *ranges.Machine
	streams []*cursor
}

type cursor struct {
	stream geo.Stream
	next   geo.Seq
	last   geo.Seq
	ahead  [][]byte
	time   geo.Timestamp
}

func (m *merge) add(st geo.Stream, from, to geo.Seq) {
	m.streams = append(m.streams, &cursor{stream: st, next: from, last: to})
}

// readAhead is how many bytes of each stream are read at a time.
const readAhead = 64 << 10

// load reads the next record of c and returns false after the last one.
func (m *merge) load(c *cursor) (bool, error) {
	if len(c.ahead) > 0 {
		return true, nil
	}
	if c.next > c.last {
		return false, nil
	}
	records, err := m.machine.Outbox(c.stream, c.next, readAhead)
	if err != nil || len(records) == 0 {
		return false, err
	}
	c.ahead = records
	return true, m.stamp(c)
}

func (m *merge) stamp(c *cursor) error {
	h, err := change.ParseHeader(c.ahead[0])
	c.time = h.CommitTime
	return err
}

// fill moves records into f until it is full, and returns the last number moved of
// each stream.
func (m *merge) fill(f *change.Frame) (map[geo.Stream]geo.Seq, error) {
	sent := map[geo.Stream]geo.Seq{}
	size := 0
	for {
		var best *cursor
		for _, c := range m.streams {
			ok, err := m.load(c)
			if err != nil {
				return nil, err
			}
			if ok && (best == nil || c.time < best.time) {
				best = c
			}
		}
		if best == nil || (size > 0 && size+len(best.ahead[0]) > change.FrameBytesMax) {
			return sent, nil
		}
		f.Records = append(f.Records, best.ahead[0])
		size += len(best.ahead[0])
		sent[best.stream] = best.next
		best.next++
		best.ahead = best.ahead[1:]
		if len(best.ahead) > 0 {
			if err := m.stamp(best); err != nil {
				return nil, err
			}
		} else {
			m.streams = slices.DeleteFunc(m.streams, func(c *cursor) bool { return c == best && c.next > c.last })
		}
	}
}
