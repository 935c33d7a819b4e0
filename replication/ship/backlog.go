package ship

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
)

// backlog reads streams of the outbox in the order of commit times, so that frames keep the order
// they would have had. Commit times of a range are strictly increasing (R6): no two records tie.
//
// Invariants: heads is a heap by the time of each stream's next record, and holds no stream without
// one; what is read ahead takes at most ahead bytes, one record more for the stream whose turn it is.
type backlog struct {
	read func(s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error)
	// trimmed is the last number that left the outbox of a stream. The receiver has it.
	trimmed func(s geo.Stream) geo.Seq
	heads   sources
	// skip is called for a stream whose records up to its head are not sent: they left the outbox, or
	// the next one, unreadable, cannot be decoded; nil else.
	skip func(c *source, unreadable []byte, err error)
	// fellOut reports that records left the outbox that the receiver may not have (R18).
	fellOut func(s geo.Stream) bool
	// share is how much of each stream is read at a time, ahead how much of all, aheadMax its bound.
	share, ahead, aheadMax int
	// t is the time of the heads that the backlog ends with.
	t geo.Timestamp
}

// source is one stream of a backlog.
type source struct {
	stream geo.Stream
	next   geo.Seq
	head   geo.Head      // the backlog ends with this record
	time   geo.Timestamp // of the record next
	prev   geo.Hash      // of the record before next
	ahead  [][]byte      // next and those behind it, empty if there was no room
}

// sources are a heap by time.
type sources []*source

func (h sources) Len() int           { return len(h) }
func (h sources) Less(i, j int) bool { return h[i].time < h[j].time }
func (h sources) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)        { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	return x
}

// shareMax bounds what is read of one stream at a time.
const shareMax = 64 << 10

// openBacklog begins to read what no frame has, up to the present heads.
func (s *Shipper) openBacklog() error {
	heads, t := s.o.Range.Machine.Heads()
	b := &backlog{read: s.read, trimmed: s.trimmed, skip: s.skip, fellOut: s.fellOut, aheadMax: s.o.AheadBytesMax, t: t}
	for _, st := range slices.SortedFunc(maps.Keys(heads), geo.Stream.Compare) {
		at, acked := s.at(st), s.ackedUpTo(st)
		if s.fellOut(st) { // After the read of what is trimmed: that was not for an acknowledgement then.
			s.early.add(st)
			s.name(st, heads[st])
			continue
		}
		if acked.Seq > at.Seq && s.holds.of[st] == nil {
			at = acked // The receiver pulled it meanwhile.
			s.name(st, at)
		}
		if at.Seq < heads[st].Seq {
			b.heads = append(b.heads, &source{stream: st, next: at.Seq + 1, head: heads[st]})
		}
	}
	b.share = min(shareMax, 1+b.aheadMax/max(1, len(b.heads)))
	kept := b.heads[:0]
	for _, c := range b.heads {
		ok, err := b.load(c)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if before := (geo.Head{Seq: c.next - 1, Hash: c.prev}); before.Seq > 0 && before != s.at(c.stream) {
			s.name(c.stream, before) // It was trimmed meanwhile, or its hash was not known.
		}
		kept = append(kept, c)
	}
	b.heads = kept
	heap.Init(&b.heads)
	s.backlog, s.lost, s.queue = b, false, queue{}
	return nil
}

// skip names the records of a stream that a backlog does not send. A stream whose record is not
// readable must not stop the others: the receiver finds the stream behind the head named here, and
// Last Sync Time stands still at what was readable.
func (s *Shipper) skip(c *source, unreadable []byte, err error) {
	if err != nil {
		s.unreadable(c.stream, c.next, unreadable, err)
	}
	if c.head.Seq <= s.at(c.stream).Seq {
		return
	}
	if err != nil || s.fellOut(c.stream) {
		s.early.add(c.stream)
	}
	s.name(c.stream, c.head)
}

// load reads from the next record of c on, and returns false after the last one. It keeps what it
// read only if there is room.
func (b *backlog) load(c *source) (bool, error) {
	for c.next <= c.head.Seq {
		records, err := b.read(c.stream, c.next, b.share)
		if err != nil {
			return false, err
		}
		if len(records) == 0 {
			n := b.trimmed(c.stream)
			if n < c.next {
				return false, fmt.Errorf("ship: the outbox of %s lacks #%d of %d", c.stream, c.next, c.head.Seq)
			}
			if c.next = n + 1; n >= c.head.Seq {
				b.skip(c, nil, nil) // The receiver has them.
			} else if b.fellOut(c.stream) {
				b.skip(c, nil, nil)
				return false, nil
			}
			continue
		}
		if err := b.stamp(c, records[0]); err != nil {
			b.skip(c, records[0], err)
			return false, nil
		}
		// Records behind the head came later than the heads of the other streams. They do not go
		// before what the queue has.
		records = records[:min(geo.Seq(len(records)), c.head.Seq-c.next+1)]
		size := 0
		for _, r := range records {
			size += len(r)
		}
		if b.ahead+size <= b.aheadMax {
			b.ahead += size
			c.ahead = records
		}
		return true, nil
	}
	return false, nil
}

// stamp sets what c knows of its next record.
func (b *backlog) stamp(c *source, next []byte) error {
	h, err := change.ParseHeader(next)
	c.time, c.prev = h.CommitTime, h.Prev
	return err
}

// peek returns the next record of all streams, and false after the last one.
func (b *backlog) peek() (r outbox.Record, ok bool, err error) {
	for len(b.heads) > 0 {
		c := b.heads[0]
		if len(c.ahead) > 0 {
			err := recordOf(c.ahead[0], &r)
			if err == nil {
				return r, true, nil
			}
			b.skip(c, c.ahead[0], err)
			b.remove(c)
			continue
		}
		records, err := b.read(c.stream, c.next, 1)
		if err != nil {
			return r, false, err
		}
		if len(records) > 0 {
			c.ahead = records[:1] // The bound is passed by this record alone.
			b.ahead += len(records[0])
			continue
		}
		if err := b.reload(c); err != nil { // It was trimmed meanwhile.
			return r, false, err
		}
	}
	return r, false, nil
}

// pop ends the turn of the record that peek returned.
func (b *backlog) pop() error {
	c := b.heads[0]
	b.ahead -= len(c.ahead[0])
	c.ahead = c.ahead[1:]
	c.next++
	if len(c.ahead) == 0 {
		return b.reload(c)
	}
	if err := b.stamp(c, c.ahead[0]); err != nil {
		b.skip(c, c.ahead[0], err)
		b.remove(c)
		return nil
	}
	heap.Fix(&b.heads, 0)
	return nil
}

// reload finds the next record of the first source, or removes the source.
func (b *backlog) reload(c *source) error {
	ok, err := b.load(c)
	if ok {
		heap.Fix(&b.heads, 0)
	} else if err == nil {
		b.remove(c)
	}
	return err
}

// remove takes the first source out.
func (b *backlog) remove(c *source) {
	for _, r := range c.ahead {
		b.ahead -= len(r)
	}
	heap.Pop(&b.heads)
}

// recordOf decodes a record of the outbox into what the feed carries.
func recordOf(encoded []byte, into *outbox.Record) error {
	rec, err := change.ParseRecord(encoded)
	if err != nil {
		return err
	}
	*into = outbox.Record{
		Stream: rec.Stream(), Seq: rec.Seq, Hash: change.HashOf(encoded), CommitTime: rec.CommitTime, Bytes: encoded, Chunks: len(rec.Chunks) > 0,
	}
	return nil
}
