package seglog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/rawfile"
)

// Names of the files: a segment, and one that is being filled with zeros.
const (
	segmentSuffix = ".seg"
	newSuffix     = ".new"
)

// segment is one file of the log. Its number grows in the order of use and is never
// given twice.
type segment struct {
	number uint64
	path   string
	file   vfs.File
	// direct is where the active segment's frames are written past the page cache, nil
	// before the first.
	direct rawfile.File
	inc    incarnation
	// size is the length of the file.
	size int64
	// end is where the next frame goes. synced: every byte before it was covered by
	// an fdatasync that succeeded, in this process or as a mark says.
	end, synced int64
	// live counts the entries whose place this is.
	live int
}

// room is how many bytes of frames the segment still takes.
func (s *segment) room() int64 { return s.size - s.end }

func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, segmentSuffix) }

// parseSegmentName is the inverse of segmentName; ok is false for any other name.
func parseSegmentName(name string) (number uint64, ok bool) {
	digits, found := strings.CutSuffix(name, segmentSuffix)
	if !found {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	return number, err == nil && number > 0 && segmentName(number) == name
}

// takeSegment returns a file of at least size bytes under the next number, whose name
// is durable and which holds zeros or what it held in a former use.
func (l *Log) takeSegment(size int64) (*segment, error) {
	if l.nextNumber > math.MaxUint32 {
		return nil, errors.New("no segment number is left")
	}
	s := &segment{number: l.nextNumber, path: l.fs.PathJoin(l.dir, segmentName(l.nextNumber))}
	if _, err := io.ReadFull(l.rand, s.inc[:]); err != nil {
		return nil, fmt.Errorf("draw the incarnation of %s: %w", s.path, err)
	}
	var err error
	if len(l.spares) > 0 && l.spares[0].size >= size {
		err = l.recycle(s)
	} else {
		err = l.create(s, size)
	}
	if err != nil {
		return nil, err
	}
	l.nextNumber++
	l.mu.Lock()
	l.segments[uint32(s.number)] = s
	l.mu.Unlock()
	return s, nil
}

// recycle renames the oldest spare to s. The name is durable before a byte of the file
// changes: a crash in between leaves a segment whose header names another number, and
// never one that is half of the former use.
func (l *Log) recycle(s *segment) error {
	old := l.spares[0]
	l.spares = l.spares[1:]
	if err := l.fs.Rename(old.path, s.path); err != nil {
		return fmt.Errorf("recycle segment: %w", err)
	}
	s.file, s.size = old.file, old.size
	l.forget(old)
	return syncDir(l.fs, l.dir)
}

func (l *Log) forget(s *segment) {
	l.mu.Lock()
	delete(l.segments, uint32(s.number))
	l.mu.Unlock()
}

// create makes s a file full of zeros. It has its name only when all of it is durable,
// so that a later fdatasync has no length and no allocation to write.
func (l *Log) create(s *segment, size int64) error {
	path := l.fs.PathJoin(l.dir, "next"+newSuffix)
	f, err := l.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create segment: %w", err)
	}
	if err := errors.Join(fill(f, size), f.Close()); err != nil {
		return fmt.Errorf("fill new segment: %w", err)
	}
	if err := l.fs.Rename(path, s.path); err != nil {
		return fmt.Errorf("name segment: %w", err)
	}
	if err := syncDir(l.fs, l.dir); err != nil {
		return err
	}
	s.size = size
	s.file, err = l.fs.OpenReadWrite(s.path, vfs.WriteCategoryUnspecified)
	return err
}

// fillBytes is how much is written at once to a new segment.
const fillBytes = 1 << 20

func fill(f vfs.File, size int64) error {
	// A hint, for one run of blocks, that a file system may not know. It is the zeros
	// written below that make the blocks allocated and initialized, or fail.
	_ = f.Preallocate(0, size)
	b := make([]byte, min(size, fillBytes))
	for left := size; left > 0; left -= min(left, fillBytes) {
		b = b[:min(left, fillBytes)]
		clear(b) // Each time: a File may change what it is given.
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return f.Sync()
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
