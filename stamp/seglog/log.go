package seglog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/rawfile"
	"antipode/stamp/state"
)

// ErrFailed: a write or fsync failed, or the log was found damaged; nothing is written
// any more.
var ErrFailed = errors.New("seglog: log is out of service")

const (
	segmentBytesDefault = 8 << 20
	// commitBytesMax bounds what is staged for one write: offsets in a segment have
	// 32 bits.
	commitBytesMax = 1 << 30
	// unsyncedBytesMax is how much of unsynced commits may wait in memory for the
	// next synced one, with which it costs no additional write.
	unsyncedBytesMax = 256 << 10
)

// Log is the segment log of one node. It implements state.Log. Everything but reads
// through a range's raft.Storage is done by one goroutine at a time.
type Log struct {
	fs           vfs.FS
	dir          string
	segmentBytes int64
	rand         io.Reader
	readOnly     bool
	// direct opens segments for writes past the page cache; nil if the file system has none.
	direct rawfile.FS

	// mu guards the map, the chain and how far its segments are durable. The scheduler
	// alone changes them and reads them without.
	mu       sync.RWMutex
	segments map[uint32]*segment
	// chain are the segments in use, the active one last.
	chain []*segment

	// The rest belongs to the scheduler.

	// spares are files for the next segments, those of the oldest log first.
	spares []*segment
	ranges map[geo.RangeID]*rangeLog
	// nextNumber is above the number of every segment file seen: none is given twice.
	nextNumber uint64
	// liveBytes is what the records of all live entries take.
	liveBytes int64

	// buf is the next frame: room for its header, and the records staged.
	buf    []byte
	staged []placed
	// touched are the ranges with something in buf.
	touched []*rangeLog
	// moving are the entries of the oldest segment that are being copied forward.
	moving []victim
	seed   seed
	batch  batch
	failed error
	closed bool
}

// placed is an entry in buf, whose place is known when it is written.
type placed struct {
	g     *rangeLog
	index uint64
	at    uint32 // in buf
	size  uint32
	term  uint32
}

// batch implements state.LogBatch. There is one of a log: what is staged is in order
// anyway.
type batch struct{ l *Log }

// NewBatch implements state.Log.
func (l *Log) NewBatch() state.LogBatch { return &l.batch }

// Range implements state.Log. A second call for a range returns the same log.
func (l *Log) Range(r geo.RangeID, voters []uint64) (state.RangeLog, error) {
	g := l.rangeLog(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.voters = voters
	return g, nil
}

func (l *Log) rangeLog(r geo.RangeID) *rangeLog {
	g := l.ranges[r]
	if g == nil {
		g = &rangeLog{l: l, id: r}
		l.ranges[r] = g
	}
	return g
}

// stage adds a record of numbers. The caller holds g.mu.
func (l *Log) stage(g *rangeLog, kind recordKind, numbers ...uint64) {
	l.touch(g)
	l.buf = appendRecord(l.buf, kind, 0, g.id, nil, numbers...)
}

// stageEntry adds an entry, whose place in g is set when it is written. The caller
// holds g.mu.
func (l *Log) stageEntry(g *rangeLog, kind recordKind, index uint64, s slot, entryType uint8, data []byte) {
	l.touch(g)
	l.staged = append(l.staged, placed{g: g, index: index, at: uint32(len(l.buf)), size: s.size, term: s.term})
	l.buf = appendRecord(l.buf, kind, entryType, g.id, data, index, uint64(s.term))
}

func (l *Log) touch(g *rangeLog) {
	if !g.touched {
		g.touched = true
		l.touched = append(l.touched, g)
	}
}

// fail takes the log out of service, if it is not yet, and returns the first failure.
func (l *Log) fail(err error) error {
	if l.failed == nil {
		l.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return l.failed
}

// Bounds of one read of entries: its length, and what lies between two of them.
const (
	readBytesMax = 1 << 20
	gapBytesMax  = 16 << 10
)

// readEntries reads entries of a range from first on, below end, back from their segment: those that one read gets, one at
// least. Each read may have to wait for the disk, on which frames are written past the page cache. The caller holds the
// range's mu, so that the segment is not recycled meanwhile: its entries are live.
func (l *Log) readEntries(g *rangeLog, first, end uint64) ([]*pb.Entry, error) {
	from := *g.slot(first)
	to, next := from.offset+from.size, first+1
	for ; next < end; next++ {
		s := *g.slot(next)
		if s.segment != from.segment || s.offset < to || s.offset-to > gapBytesMax || s.offset+s.size-from.offset > readBytesMax {
			break
		}
		to = s.offset + s.size
	}
	b := make([]byte, to-from.offset)
	seg, err := l.readAt(b, from, g.id, first)
	if err != nil {
		return nil, err
	}
	out, sd := make([]*pb.Entry, 0, next-first), new(seed)
	for i := first; i < next; i++ {
		s := *g.slot(i)
		at := s.offset - from.offset
		r, err := seg.entryRecord(sd, b[at:at+s.size:at+s.size], g.id, i, s)
		if err != nil {
			return nil, err
		}
		index, term, typ := i, r.n[1], pb.EntryType(r.entryType)
		e := &pb.Entry{Index: &index, Term: &term, Type: &typ}
		if len(r.data) > 0 {
			e.Data = r.data
		}
		out = append(out, e)
	}
	return out, nil
}

// readRecord reads the record of an entry into b, which is as long as it.
func (l *Log) readRecord(sd *seed, b []byte, id geo.RangeID, index uint64, s slot) (record, error) {
	seg, err := l.readAt(b, s, id, index)
	if err != nil {
		return record{}, err
	}
	return seg.entryRecord(sd, b, id, index, s)
}

// readAt fills b from the place of an entry on.
func (l *Log) readAt(b []byte, s slot, id geo.RangeID, index uint64) (*segment, error) {
	l.mu.RLock()
	seg := l.segments[s.segment]
	l.mu.RUnlock()
	if err := readFull(seg.file, b, int64(s.offset)); err != nil {
		return nil, fmt.Errorf("read index %d of range %d from %s: %w", index, id, seg.path, err)
	}
	return seg, nil
}

// entryRecord decodes the record of an entry, whose bytes are b.
func (seg *segment) entryRecord(sd *seed, b []byte, id geo.RangeID, index uint64, s slot) (record, error) {
	r, ok := parseRecord(sd, b, seg.inc, int64(s.offset))
	if !ok || r.size != len(b) || r.id != id || r.kind != recordEntry && r.kind != recordCopy ||
		r.n[0] != index || r.n[1] != uint64(s.term) {
		return record{}, fmt.Errorf("%w: index %d of range %d, at %d of %s", state.ErrLogCorrupt, index, id, s.offset, seg.path)
	}
	return r, nil
}

// readFull fills p from offset off. The end of the file before that is an error.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close implements state.Log: what was committed without sync is written too, and
// the log ends with a mark, so that after it any damage is distinguished from a torn tail. A
// second Close does nothing.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if l.failed == nil && !l.readOnly {
		errs = append(errs, l.finish())
	}
	_ = l.fail(errors.New("closed"))
	for _, s := range l.segments {
		errs = append(errs, s.endDirect(), s.file.Close())
	}
	return errors.Join(errs...)
}

func (l *Log) finish() error {
	if err := l.commit(true); err != nil {
		return err
	}
	if err := l.mark(); err != nil {
		return err
	}
	return l.sync()
}
