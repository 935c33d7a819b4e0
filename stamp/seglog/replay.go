package seglog

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/state"
)

// build reads the chain and what is unproven behind it, and begins a new segment
// with the latter.
func (l *Log) build(last *tail) error {
	if last == nil {
		if l.readOnly {
			return nil
		}
		return l.goOn(segmentHeader{}, nil, nil, nil)
	}
	r := replay{l: l}
	broken, err := l.readChain(&r, last)
	if err != nil {
		return err
	}
	h := segmentHeader{previous: last.header.previous, previousEnd: last.header.previousEnd, previousInc: last.header.previousInc}
	unproven := last.unproven
	if last.synced > 0 {
		h = segmentHeader{previous: last.segment.number, previousEnd: last.synced, previousInc: last.header.inc}
	} else {
		if err := r.frames(last.scanned, unproven[:1]); err != nil {
			return err
		}
		unproven = unproven[1:]
	}
	for _, g := range l.ranges {
		g.written = g.rangeState
	}
	if len(l.chain) == 0 {
		h = segmentHeader{}
	}
	states := l.states()
	if err := r.frames(last.scanned, unproven); err != nil {
		return err
	}
	if err := l.checkFilled(); err != nil {
		return errors.Join(broken, err)
	}
	if l.readOnly {
		return nil
	}
	return l.goOn(h, states, last.scanned, unproven)
}

// readChain reads the chain. Of one with a damaged segment it reads what follows, as if that one were gone, and returns the
// damage as broken: a spare still has its place in the chain on the disk, and is not scrubbed. Whether anything in it was wanted
// shows as an index without entry.
func (l *Log) readChain(r *replay, last *tail) (broken, err error) {
	from := 0
	for i, s := range l.chain {
		sc := last.scanned
		if s != last.segment {
			if sc, err = scan(s); err != nil {
				return nil, err
			}
		}
		frames, ok := sc.proven(s.end)
		if !ok || sc.header.inc != s.inc {
			broken = corrupt(s, sc.end, "not intact up to %d, where it was durable", s.end)
			if i == len(l.chain)-1 {
				return nil, broken
			}
			l.ranges, l.liveBytes, r.based = map[geo.RangeID]*rangeLog{}, 0, false
			for _, s := range l.chain {
				s.live = 0
			}
			from = i + 1
			continue
		}
		if err := r.frames(sc, frames); err != nil {
			return nil, err
		}
	}
	l.chain = l.chain[from:]
	return broken, nil
}

// goOn begins the segment in which the log goes on, makes it durable with the
// unproven frames, and lets go of the files that are no part of the log.
func (l *Log) goOn(h segmentHeader, states []byte, sc *scanned, unproven []frameHeader) error {
	need := int64(0)
	for _, f := range unproven {
		need += f.size()
	}
	if err := l.begin(states, need); err != nil {
		return err
	}
	if err := l.rewrite(sc, unproven); err != nil {
		return err
	}
	// Before the header: it cuts off what was found above the last mark.
	if err := l.active().file.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", l.active().path, err)
	}
	if err := l.writeHeader(h); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	if err := l.mark(); err != nil {
		return err
	}
	return l.sweep()
}

// sweep retires the files that are in no chain.
func (l *Log) sweep() error {
	used := map[*segment]bool{}
	for _, s := range l.chain {
		used[s] = true
	}
	for number := uint64(1); number < l.nextNumber; number++ {
		if s := l.segments[uint32(number)]; s != nil && !used[s] {
			if err := l.retire(s); err != nil {
				return err
			}
		}
	}
	return l.reclaim()
}

// rewrite writes unproven frames again, in the active segment, and points their
// entries there.
func (l *Log) rewrite(sc *scanned, frames []frameHeader) error {
	for _, f := range frames {
		l.buf = append(l.buf, sc.payload(f)...)
		at, err := l.writeFrame(l.active(), frameBatch)
		if err != nil {
			return err
		}
		err = eachRecord(sc.payload(f), func(r record, pos int) {
			if r.kind != recordEntry && r.kind != recordCopy {
				return
			}
			g := l.ranges[r.id]
			if index := r.n[0]; index > g.truncated && index <= g.last {
				s := *g.slot(index)
				if s.segment == uint32(f.number) && int64(s.offset) == f.offset+headerBytes+int64(pos) {
					s.segment, s.offset = uint32(l.active().number), uint32(at+headerBytes+int64(pos))
					l.setSlot(g.slot(index), s)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for _, g := range l.ranges {
		g.written = g.rangeState
	}
	return nil
}

// eachRecord calls f for every record of an intact payload and its place in it.
func eachRecord(payload []byte, f func(r record, pos int)) error {
	for pos := 0; pos < len(payload); {
		r, ok := decodeRecord(payload[pos:])
		if !ok {
			return state.ErrLogCorrupt
		}
		f(r, pos)
		pos += r.size
	}
	return nil
}

// entriesMax bounds the index of a range at open: one that needs more than 4 GiB of
// memory is taken for damage.
const entriesMax = 1 << 28

// checkFilled: every index of every range has its entry.
func (l *Log) checkFilled() error {
	for id, g := range l.ranges {
		for i := range g.slots.len() {
			if g.slots.at(i).segment == 0 {
				return fmt.Errorf("%w: index %d of range %d is in no segment", state.ErrLogCorrupt, g.truncated+1+uint64(i), id)
			}
		}
	}
	return nil
}

// replay builds the ranges from the records, in order. A record that does not fit what
// is before it is state.ErrLogCorrupt: the writer never writes one.
type replay struct {
	l *Log
	// based: the states of the first segment were read.
	based bool
}

func (r *replay) frames(sc *scanned, frames []frameHeader) error {
	for _, f := range frames {
		states := 0
		var err error
		parseErr := eachRecord(sc.payload(f), func(rec record, pos int) {
			if rec.kind == recordState {
				states++
			}
			if err == nil {
				err = r.record(rec, slot{
					segment: uint32(f.number), offset: uint32(f.offset + headerBytes + int64(pos)),
					size: uint32(rec.size), term: uint32(rec.n[1]),
				})
			}
		})
		if err == nil {
			err = parseErr
		}
		if err == nil && f.kind == frameState {
			err = r.allStates(states)
		}
		if err != nil {
			return fmt.Errorf("%s at %d: %w", sc.segment.path, f.offset, err)
		}
	}
	return nil
}

// allStates: a state frame names every range that has a state.
func (r *replay) allStates(count int) error {
	r.based = true
	for _, g := range r.l.ranges {
		if g.rangeState != (rangeState{}) {
			count--
		}
	}
	if count != 0 {
		return fmt.Errorf("%w: the states of %d ranges are missing", state.ErrLogCorrupt, -count)
	}
	return nil
}

func (r *replay) record(rec record, at slot) error {
	g := r.l.rangeLog(rec.id)
	ok := false
	switch rec.kind {
	case recordState:
		ok = r.state(g, rangeState{rec.n[0], rec.n[1], rec.n[2], rec.n[3], rec.n[4], rec.n[5]})
	case recordHardState:
		g.term, g.vote, g.commit = rec.n[0], rec.n[1], rec.n[2]
		ok = true
	case recordTrim:
		ok = r.trim(g, geo.EntryID{Index: rec.n[0], Term: rec.n[1]})
	case recordReset:
		g.reset(geo.EntryID{Index: rec.n[0], Term: rec.n[1]})
		ok = true
	case recordEntry:
		ok = r.entry(g, rec.n[0], at)
	case recordCopy:
		ok = r.copied(g, rec.n[0], at)
	}
	if !ok {
		return fmt.Errorf("%w: record kind %d %v does not fit range %d, which is at %+v",
			state.ErrLogCorrupt, rec.kind, rec.n, rec.id, g.rangeState)
	}
	return nil
}

// state takes the state that the first segment begins with; its entries are found as
// copies later on, unless they were replaced or trimmed. Those of later segments must
// be what was read so far.
func (r *replay) state(g *rangeLog, s rangeState) bool {
	if r.based {
		return g.rangeState == s
	}
	if g.rangeState != (rangeState{}) || s.last < s.truncated || s.last-s.truncated > entriesMax {
		return false
	}
	g.rangeState = s
	for range s.last - s.truncated {
		g.slots.push(slot{size: entryBytes})
		g.bytes += entryOverhead
	}
	return true
}

func (r *replay) entry(g *rangeLog, index uint64, at slot) bool {
	if index <= g.truncated || index > g.last+1 {
		return false
	}
	g.cutBack(index)
	g.slots.push(slot{})
	g.last = index
	g.bytes += uint64(at.bytes())
	r.l.setSlot(g.slot(index), at)
	return true
}

// copied fills an index that is known and never appends.
func (r *replay) copied(g *rangeLog, index uint64, at slot) bool {
	if index <= g.truncated || index > g.last {
		return false
	}
	s := g.slot(index)
	if s.segment != 0 && (s.term != at.term || s.size != at.size) {
		return false
	}
	g.bytes += uint64(at.bytes()) - uint64(s.bytes())
	r.l.setSlot(s, at)
	return true
}

func (r *replay) trim(g *rangeLog, to geo.EntryID) bool {
	if to.Index <= g.truncated || to.Index > g.last {
		return false
	}
	if s := g.slot(to.Index); s.segment != 0 && uint64(s.term) != to.Term {
		return false
	}
	g.cutUpTo(to)
	return true
}
