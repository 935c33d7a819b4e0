package seglog

import (
	"cmp"
	"fmt"
	"slices"
)

// Commit implements state.LogBatch. With sync it is one write and one fdatasync, at
// a change of segments some more. Without, what was staged waits in memory for the
// next synced commit, or until there is much of it. After an error the log is out of
// service, and every later Commit returns that error.
func (b *batch) Commit(sync bool) error { return b.l.commit(sync) }

func (l *Log) commit(sync bool) error {
	if l.failed != nil {
		return l.failed
	}
	if !sync && len(l.buf) < unsyncedBytesMax {
		return nil
	}
	err := l.write()
	if err == nil && sync {
		err = l.sync()
	}
	if err == nil && sync {
		err = l.reclaim()
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// write writes what is staged as one frame, and with it some of what is to be copied
// forward.
func (l *Log) write() error {
	if len(l.buf) == headerBytes {
		return nil
	}
	if err := l.copyForward(); err != nil {
		return err
	}
	if len(l.buf) > commitBytesMax {
		return fmt.Errorf("%d bytes in one commit, %d at most", len(l.buf), commitBytesMax)
	}
	if need := pages(int64(len(l.buf))); l.active().room() < need {
		if err := l.nextSegment(need); err != nil {
			return err
		}
	}
	at, err := l.writeFrame(l.active(), frameBatch)
	if err != nil {
		return err
	}
	l.place(uint32(l.active().number), uint32(at))
	return nil
}

func (l *Log) active() *segment { return l.chain[len(l.chain)-1] }

// writeFrame seals buf as the next frame of s, writes it and empties buf. It returns
// where the frame begins.
func (l *Log) writeFrame(s *segment, kind frameKind) (at int64, err error) {
	at = s.end
	f := frameHeader{
		kind: kind, payload: uint32(len(l.buf) - headerBytes), synced: s.synced, number: s.number, offset: at, inc: s.inc,
	}
	f.encode(l.buf)
	sealRecords(&l.seed, l.buf[headerBytes:], s.inc, at+headerBytes)
	for n := f.size() - int64(len(l.buf)); n > 0; n -= min(n, headerBytes) {
		l.buf = append(l.buf, zeros[:min(n, headerBytes)]...)
	}
	if l.direct != nil {
		l.buf = pageAligned(l.buf)
	}
	if err := l.writePages(s, l.buf, at); err != nil {
		return 0, fmt.Errorf("write %d bytes at %d of %s: %w", len(l.buf), at, s.path, err)
	}
	s.end += int64(len(l.buf))
	l.emptyBuf()
	return at, nil
}

var zeros [headerBytes]byte //nolint:gochecknoglobals // Never written.

// bufBytesKept is the largest buffer that is kept for the next frame.
const bufBytesKept = 4 << 20

func (l *Log) emptyBuf() {
	if cap(l.buf) > bufBytesKept {
		l.buf = nil
	}
	l.buf = append(l.buf[:0], zeros[:]...)
}

// place enters where the entries of the frame at offset at went.
func (l *Log) place(number, at uint32) {
	for _, p := range l.staged {
		p.g.mu.Lock()
		if p.index > p.g.truncated && p.index <= p.g.last {
			l.setSlot(p.g.slot(p.index), slot{segment: number, offset: at + p.at, size: p.size, term: p.term})
		}
		p.g.mu.Unlock()
	}
	clear(l.staged)
	l.staged = l.staged[:0]
	for _, g := range l.touched {
		g.shrinkTail()
	}
	clear(l.touched)
	l.touched = l.touched[:0]
}

// setSlot changes the place of an entry. The caller holds the range's mu.
func (l *Log) setSlot(s *slot, to slot) {
	l.release(*s)
	*s = to
	l.segments[to.segment].live++
	l.liveBytes += int64(to.size)
}

// release takes an entry off its segment.
func (l *Log) release(s slot) {
	if s.segment != 0 {
		l.segments[s.segment].live--
		l.liveBytes -= int64(s.size)
	}
}

// sync makes durable what was written.
func (l *Log) sync() error {
	s := l.active()
	if s.synced == s.end {
		return nil
	}
	if err := s.file.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", s.path, err)
	}
	l.mu.Lock()
	s.synced = s.end
	l.mu.Unlock()
	return nil
}

// mark writes a frame with nothing in it but how far the log is durable. buf is empty.
func (l *Log) mark() error {
	if l.active().room() < pageBytes {
		return nil // The next segment's header will say it.
	}
	_, err := l.writeFrame(l.active(), frameBatch)
	return err
}

// nextSegment makes the active segment durable and begins the next, with room for a
// frame of need bytes.
func (l *Log) nextSegment(need int64) error {
	if err := l.sync(); err != nil {
		return err
	}
	old := l.active()
	if err := old.endDirect(); err != nil {
		return fmt.Errorf("close %s: %w", old.path, err)
	}
	h := segmentHeader{previous: old.number, previousEnd: old.end, previousInc: old.inc}
	if err := l.begin(l.states(), need); err != nil {
		return err
	}
	return l.writeHeader(h)
}

// states are the records of every range's state as of the last frame written.
func (l *Log) states() []byte {
	var known []*rangeLog
	for _, g := range l.ranges {
		if g.written != (rangeState{}) {
			known = append(known, g)
		}
	}
	slices.SortFunc(known, func(a, b *rangeLog) int { return cmp.Compare(a.id, b.id) })
	var b []byte
	for _, g := range known {
		s := g.written
		b = appendRecord(b, recordState, 0, g.id, nil, s.term, s.vote, s.commit, s.truncated, s.truncatedTerm, s.last)
	}
	return b
}

// begin makes a segment active that begins with the given states and has room for
// frames of need bytes. Nothing of it is durable, and it is no part of the log before
// its header is.
func (l *Log) begin(states []byte, need int64) error {
	stateBytes := pages(headerBytes + int64(len(states)))
	s, err := l.takeSegment(max(l.segmentBytes, pageBytes+stateBytes+need))
	if err != nil {
		return err
	}
	b := make([]byte, stateBytes)
	f := frameHeader{
		kind: frameState, payload: uint32(len(states)), number: s.number, offset: pageBytes, inc: s.inc,
	}
	f.encode(b)
	copy(b[headerBytes:], states)
	sealRecords(&l.seed, b[headerBytes:headerBytes+len(states)], s.inc, pageBytes+headerBytes)
	if _, err := s.file.WriteAt(b, pageBytes); err != nil {
		return fmt.Errorf("write states to %s: %w", s.path, err)
	}
	s.end = pageBytes + stateBytes
	l.mu.Lock()
	l.chain = append(l.chain, s)
	l.mu.Unlock()
	return nil
}

// writeHeader makes the active segment continue what h names. From then on nothing
// counts that stands in the former segment behind h.previousEnd: so all that was found
// there must be durable in this one. At a change of segments there is nothing, and one
// sync covers header, states and first commit.
func (l *Log) writeHeader(h segmentHeader) error {
	s := l.active()
	h.number, h.inc = s.number, s.inc
	b := make([]byte, pageBytes)
	h.encode(b)
	if _, err := s.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("write header of %s: %w", s.path, err)
	}
	return nil
}
