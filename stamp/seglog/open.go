package seglog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/stamp/rawfile"
	"antipode/stamp/state"
)

const folderMode os.FileMode = 0o755

// Open opens the log in dir, which it makes if need be (its parent must exist and be
// durable). Everything that is found is durable when it returns. It uses FS,
// LogSegmentBytes, Rand and ReadOnly of the options. With ReadOnly nothing is changed,
// and the log must exist; what is found may then not be durable.
//
// state.ErrLogCorrupt: the log misses, or holds altered, what was durable: the replicas
// of this node are lost (R4). ErrVersion: it was written in another format. On any error
// the segments are left as they are.
func Open(dir string, o state.Options) (*Log, error) {
	l := newLog(dir, o)
	err := l.load()
	if err != nil {
		_ = l.fail(err) // so that Close writes nothing
		return nil, errors.Join(fmt.Errorf("open log %s: %w", dir, err), l.Close())
	}
	return l, nil
}

func newLog(dir string, o state.Options) *Log {
	l := &Log{
		fs: o.FS, dir: dir, segmentBytes: pages(o.LogSegmentBytes), rand: o.Rand, readOnly: o.ReadOnly,
		segments: map[uint32]*segment{}, ranges: map[geo.RangeID]*rangeLog{}, nextNumber: 1,
	}
	if l.fs == nil {
		l.fs = vfs.Default
	}
	l.direct = rawfile.Of(l.fs)
	l.batch.l = l
	l.emptyBuf()
	if l.segmentBytes == 0 {
		l.segmentBytes = segmentBytesDefault
	}
	if l.rand == nil {
		l.rand = rand.Reader
	}
	return l
}

func (l *Log) load() error {
	if !l.readOnly {
		if err := l.fs.MkdirAll(l.dir, folderMode); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := syncDir(l.fs, l.fs.PathDir(l.dir)); err != nil {
			return err
		}
	}
	numbers, err := l.openSegments()
	if err != nil {
		return err
	}
	last, err := l.findEnd(numbers)
	if err != nil {
		return err
	}
	if l.chain, err = l.findChain(last); err != nil {
		return err
	}
	return l.build(last)
}

// openSegments opens all segments and returns their numbers, in order.
func (l *Log) openSegments() ([]uint64, error) {
	numbers, err := l.list()
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		if err := l.openSegment(number); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// list returns the numbers of the segments, in order.
func (l *Log) list() ([]uint64, error) {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list folder: %w", err)
	}
	var numbers []uint64
	for _, name := range names {
		if number, ok := parseSegmentName(name); ok {
			numbers = append(numbers, number)
		} else if strings.HasSuffix(name, newSuffix) && !l.readOnly {
			if err := l.fs.Remove(l.fs.PathJoin(l.dir, name)); err != nil {
				return nil, fmt.Errorf("remove unfinished segment: %w", err)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (l *Log) openSegment(number uint64) error {
	s := &segment{number: number, path: l.fs.PathJoin(l.dir, segmentName(number))}
	var err error
	if l.readOnly {
		s.file, err = l.fs.Open(s.path)
	} else {
		s.file, err = l.fs.OpenReadWrite(s.path, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return err
	}
	l.segments[uint32(number)] = s
	l.nextNumber = number + 1
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	return nil
}

// tail is the newest segment that was begun. Its frames above synced are not known to
// be durable.
type tail struct {
	*scanned
	// unproven are those frames: with synced 0 all of them, the states included.
	unproven []frameHeader
}

// findEnd finds the newest segment that was begun; nil if there is none. A newer one
// of which no sync is known to have succeeded was being begun when the process ended,
// and nothing was promised in it.
func (l *Log) findEnd(numbers []uint64) (*tail, error) {
	for _, number := range slices.Backward(numbers) {
		s := l.segments[uint32(number)]
		sc, err := scan(s)
		if err != nil {
			return nil, err
		}
		if sc.synced > sc.end {
			return nil, corrupt(s, sc.end, "not intact below the mark at %d", sc.synced)
		}
		if !sc.begun() {
			continue
		}
		t := &tail{scanned: sc}
		s.inc = sc.header.inc
		for _, f := range sc.frames {
			if f.offset+f.size() > sc.synced {
				t.unproven = append(t.unproven, f)
			}
		}
		return t, nil
	}
	return nil, nil //nolint:nilnil // A new log has no end.
}

func corrupt(s *segment, at int64, format string, args ...any) error {
	return fmt.Errorf("%w: %s at %d: %s", state.ErrLogCorrupt, s.path, at, fmt.Sprintf(format, args...))
}

// findChain follows the headers down from the end of the log to the oldest segment
// that is there, and returns the proven ones, oldest first. One further down that is
// gone was recycled; if anything in it was wanted, that shows as an index without entry.
func (l *Log) findChain(last *tail) ([]*segment, error) {
	if last == nil {
		return nil, nil
	}
	var chain []*segment
	if last.synced > 0 {
		s := last.segment
		s.synced, s.end = last.synced, last.synced
		chain = append(chain, s)
	}
	for h := last.header; h.previous != 0; {
		s := l.segments[uint32(h.previous)]
		if s == nil {
			break
		}
		previous, ok, err := readHeader(s)
		if err != nil {
			return nil, err
		}
		if broken := !ok || previous.inc != h.previousInc; broken && len(chain) == 0 {
			return nil, corrupt(s, 0, "not the segment that was continued")
		} else if broken {
			break // As if it were gone, as for one that is not intact: see readChain.
		}
		s.inc, s.synced, s.end = previous.inc, h.previousEnd, h.previousEnd
		chain = append(chain, s)
		h = previous
	}
	slices.Reverse(chain)
	return chain, nil
}
