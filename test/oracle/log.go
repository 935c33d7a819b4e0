package oracle

import (
	"errors"
	"fmt"
	"sync"

	"antipode/geo"
)

// The ways in which a log breaks a promise, beside those of a key.
var (
	// ErrMoved means that a record is not where its answer, its condition or an earlier read placed it.
	ErrMoved = errors.New("record is at another place of the log")
	// ErrTwice means that a record that was sent once is in the log twice.
	ErrTwice = errors.New("record is in the log twice")
)

// AnyPosition is the position of a record that may be appended wherever the log ends.
const AnyPosition = -1

// Record is a record as a reader of a log finds it: its number and where it begins, in bytes.
type Record struct {
	Number Version
	Offset int64
}

// appended is one record that was sent to be appended.
type appended struct {
	size int64
	// position is where it may be alone, or AnyPosition.
	position int64
	fate     fate
	// offset, count and at are what its answer gave, meaningful if it was acknowledged: where it begins, how many records
	// there are with it, and the commit time.
	offset int64
	count  int
	at     geo.Timestamp
	etag   string
}

// Log checks the reads of one log, to which several clients append records. A client does not send a record again
// that could then be there twice. Methods may be called concurrently.
//
// Invariant: a read is found good only if all reads together, in some outcome of the unanswered appends, are of one sequence of
// records that only grows.
type Log struct {
	mu sync.Mutex
	// records are those sent; records[n-1] has number n.
	records []appended
	// seen is the longest sequence that a read showed, and shown the bytes that the primary has shown at least.
	seen  []Record
	shown int64
}

// Begin begins an append of so many bytes at a position, or at AnyPosition.
func (l *Log) Begin(size, position int64) Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, appended{size: size, position: position})
	return Version(len(l.records))
}

// Acked records that an append was acknowledged. An error means that no log can have given this answer.
func (l *Log) Acked(n Version, offset int64, count int, etag string, at geo.Timestamp) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.records[n-1]
	r.fate, r.offset, r.count, r.etag, r.at = applied, offset, count, etag, at
	if r.position != AnyPosition && r.position != offset {
		return fmt.Errorf("%w: %d was to begin at %d, the answer is %d", ErrMoved, n, r.position, offset)
	}
	for i, o := range l.records {
		if m := Version(i + 1); m != n && o.fate == applied && offset < o.offset+o.size && o.offset < offset+r.size {
			return fmt.Errorf("%w: %d is answered to be at %d, where %d is", ErrMoved, n, offset, m)
		}
	}
	return nil
}

// Refused records that an append certainly did not happen.
func (l *Log) Refused(n Version) { l.end(n, refused) }

// Lost records that no answer came: the record may be there, once.
func (l *Log) Lost(n Version) { l.end(n, lost) }

func (l *Log) end(n Version, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[n-1].fate = f
}

// Begun returns how many appends were begun.
func (l *Log) Begun() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// Pending reports whether an append has no outcome yet.
func (l *Log) Pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.fate == pending {
			return true
		}
	}
	return false
}

// Floor returns the length in bytes that a read at the primary must show if it begins now.
func (l *Log) Floor() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.shown, l.acked(func(appended) bool { return true }))
}

// FloorAt returns the length that a secondary with the given sync time must show.
func (l *Log) FloorAt(sync geo.Timestamp) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked(func(r appended) bool { return r.at <= sync })
}

// Newest is the greatest commit time that was acknowledged.
func (l *Log) Newest() (at geo.Timestamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		at = max(at, r.at)
	}
	return at
}

// acked is where the last of some acknowledged records ends. The caller holds mu.
func (l *Log) acked(which func(appended) bool) (end int64) {
	for _, r := range l.records {
		if r.fate == applied && which(r) {
			end = max(end, r.offset+r.size)
		}
	}
	return end
}

// AtPrimary checks a read at the primary that began when Floor returned floor.
func (l *Log) AtPrimary(found []Record, floor int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(found, floor, ErrLost); err != nil {
		return err
	}
	l.shown = max(l.shown, l.length(found))
	return nil
}

// AtSecondary checks a read at the secondary, which FloorAt or an earlier read there promised to be of floor bytes.
func (l *Log) AtSecondary(found []Record, floor int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read(found, floor, ErrBehind)
}

// Resolve checks a read at the primary while nobody appends. What has no answer and is not there does not come any more.
func (l *Log) Resolve(found []Record) error {
	if err := l.AtPrimary(found, l.Floor()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	there := map[Version]bool{}
	for _, r := range found {
		there[r.Number] = true
	}
	for i := range l.records {
		if r := &l.records[i]; r.fate == lost && !there[Version(i+1)] {
			r.fate = refused
		}
	}
	return nil
}

// Final checks a read that must show all that the primary has shown, and no more, under the tag of the last acknowledged
// record if that is the last.
func (l *Log) Final(found []Record, etag string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(found, l.shown, ErrBehind); err != nil {
		return err
	}
	if n := l.length(found); n != l.shown {
		return fmt.Errorf("%w: %d bytes, the primary has %d", ErrInvented, n, l.shown)
	}
	if len(found) == 0 {
		return nil
	}
	last := found[len(found)-1].Number
	if r := l.records[last-1]; r.etag != "" && r.etag != etag {
		return fmt.Errorf("%w: record %d acknowledged as %s, read as %s", ErrTag, last, r.etag, etag)
	}
	return nil
}

// length is where the last record of a read ends. The caller holds mu.
func (l *Log) length(found []Record) int64 {
	if len(found) == 0 {
		return 0
	}
	last := found[len(found)-1]
	return last.Offset + l.records[last.Number-1].size
}

// read checks a read of at least floor bytes, where too few of them are the error short. The caller holds mu.
func (l *Log) read(found []Record, floor int64, short error) error {
	there := map[Version]bool{}
	end := int64(0)
	for i, f := range found {
		if f.Number == 0 || int(f.Number) > len(l.records) || l.records[f.Number-1].fate == refused {
			return fmt.Errorf("%w: record %d at %d", ErrInvented, f.Number, f.Offset)
		}
		r := l.records[f.Number-1]
		switch {
		case there[f.Number]:
			return fmt.Errorf("%w: %d, again at %d", ErrTwice, f.Number, f.Offset)
		case f.Offset != end:
			return fmt.Errorf("%w: %d is at %d, the record before it ends at %d", ErrMoved, f.Number, f.Offset, end)
		case r.position != AnyPosition && r.position != f.Offset:
			return fmt.Errorf("%w: %d is at %d, its condition was %d", ErrMoved, f.Number, f.Offset, r.position)
		case r.fate == applied && (r.offset != f.Offset || r.count != i+1):
			return fmt.Errorf("%w: %d is the record %d at %d, answered was %d at %d", ErrMoved, f.Number, i+1, f.Offset, r.count, r.offset)
		case i < len(l.seen) && l.seen[i] != f:
			return fmt.Errorf("%w: %d is at %d, where %d was read", ErrMoved, f.Number, f.Offset, l.seen[i].Number)
		}
		there[f.Number] = true
		end += r.size
	}
	if end < floor {
		return fmt.Errorf("%w: %d bytes of the log, which must have %d", short, end, floor)
	}
	for i, r := range l.records {
		if n := Version(i + 1); r.fate == applied && r.offset < end && !there[n] {
			return fmt.Errorf("%w: record %d is not at %d", ErrLost, n, r.offset)
		}
	}
	if len(found) > len(l.seen) {
		l.seen = found
	}
	return nil
}
