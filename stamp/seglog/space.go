package seglog

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// segmentsMin is how many segments are left alone, whatever they hold.
	segmentsMin = 4
	// spaceFactor: when the segments take more than this many times what lives in
	// them, the oldest is emptied. At 2, at most every second byte written is a copy.
	spaceFactor = 2
	// sparesMax is how many dead segments are kept to be used again.
	sparesMax = 4
	// copyBytes of records are copied forward with a write, and as much again as the
	// write has.
	copyBytes = 64 << 10
)

// victim is an entry that is to be copied forward.
type victim struct {
	g     *rangeLog
	index uint64
}

// reclaim gives the oldest segments free that hold nothing live. It is called right
// after a sync: what made their entries dead, or their copies, is durable.
func (l *Log) reclaim() error {
	for len(l.chain) > 1 && l.chain[0].live == 0 {
		dead := l.chain[0]
		l.mu.Lock()
		l.chain = slices.Clone(l.chain[1:])
		l.mu.Unlock()
		l.moving = nil
		if err := l.retire(dead); err != nil {
			return err
		}
	}
	return nil
}

// retire keeps a segment that nothing needs for its next use, or removes it. The name
// may come back in a crash: what stands in such a file is left out at open, or is the
// log of before and read as such.
func (l *Log) retire(s *segment) error {
	if s.size == l.segmentBytes && len(l.spares) < sparesMax {
		l.spares = append(l.spares, s)
		return nil
	}
	l.forget(s)
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	if err := l.fs.Remove(s.path); err != nil {
		return fmt.Errorf("remove segment: %w", err)
	}
	return nil
}

// segmentsMax is how many segments there may be before the oldest is emptied.
func (l *Log) segmentsMax() int {
	return max(segmentsMin, 2+int(spaceFactor*l.liveBytes/l.segmentBytes))
}

// copyForward adds to buf copies of some live entries of the oldest segment, while
// there are too many segments.
func (l *Log) copyForward() error {
	if len(l.moving) == 0 && len(l.chain) > l.segmentsMax() {
		l.findVictims()
	}
	oldest := uint32(l.chain[0].number)
	for limit := 2*len(l.buf) + copyBytes; len(l.moving) > 0 && len(l.buf) < limit; {
		v := l.moving[len(l.moving)-1]
		l.moving = l.moving[:len(l.moving)-1]
		if err := l.copyEntry(v, oldest); err != nil {
			return err
		}
	}
	return nil
}

// findVictims lists what is live in the oldest segment, the first to be copied last.
func (l *Log) findVictims() {
	oldest := uint32(l.chain[0].number)
	for _, g := range l.ranges {
		g.mu.Lock()
		for i := range g.slots.len() {
			if g.slots.at(i).segment == oldest {
				l.moving = append(l.moving, victim{g, g.truncated + 1 + uint64(i)})
			}
		}
		g.mu.Unlock()
	}
	sortVictims(l.moving)
}

// copyEntry stages a copy of an entry that still lies in the oldest segment. An entry
// that does not fit its checksum takes the log out of service (R4): it must not be
// copied, nor dropped.
func (l *Log) copyEntry(v victim, oldest uint32) error {
	v.g.mu.Lock()
	defer v.g.mu.Unlock()
	if v.index <= v.g.truncated || v.index > v.g.last {
		return nil
	}
	s := *v.g.slot(v.index)
	if s.segment != oldest {
		return nil
	}
	r, err := l.readRecord(&l.seed, make([]byte, s.size), v.g.id, v.index, s)
	if err != nil {
		return fmt.Errorf("copy forward: %w", err)
	}
	l.stageEntry(v.g, recordCopy, v.index, s, r.entryType, r.data)
	return nil
}

// sortVictims puts them in an order that depends on nothing but what they are.
func sortVictims(vs []victim) {
	slices.SortFunc(vs, func(a, b victim) int {
		return -cmp.Or(cmp.Compare(a.g.id, b.g.id), cmp.Compare(a.index, b.index))
	})
}
