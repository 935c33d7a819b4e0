package seglog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/state"
)

// Use says what a segment is to the log.
type Use string

// The uses.
const (
	// UseActive is the newest segment that was begun.
	UseActive Use = "active"
	// UseChain is one that the log continues from.
	UseChain Use = "chain"
	// UseSpare is one that waits to be used again, or was being begun.
	UseSpare Use = "spare"
	// UseUnlinked is one below a break: no intact segment shows that it is a part of the
	// log, or that it is not.
	UseUnlinked Use = "unlinked"
)

// Span is a stretch of a file, in bytes.
type Span struct{ From, To int64 }

// Segment is one file of a log as Inspect found it.
type Segment struct {
	Number uint64
	Path   string
	Bytes  int64
	Use    Use
	// Continues is the segment before it, 0 for none or where the header is damaged.
	Continues uint64
	// HeaderDamaged: it cannot be read; the frames were found without it.
	HeaderDamaged bool
	// End is behind the last intact frame; everything below Durable was fsynced, as the
	// marks of this segment or the header of the next one say.
	End, Durable int64
	// Records counts the records of intact frames.
	Records int
	// Damage are the stretches below Durable that are not intact.
	Damage []Span
}

// Record is one record of an intact frame.
type Record struct {
	Segment uint64
	Offset  int64
	// Durable: an fdatasync that is known to have succeeded covered it.
	Durable bool
	Kind    RecordKind
	Range   geo.RangeID
	// Index and Term of RecordEntry, RecordCopy, RecordTrim and RecordReset; EntryType and
	// Data of the first two. Data is valid during the call.
	Index, Term uint64
	EntryType   pb.EntryType
	Data        []byte
	// HardState of RecordHardState and RecordState; Truncated, TruncatedTerm and Last of
	// RecordState alone.
	HardState struct{ Term, Vote, Commit uint64 }
	Truncated struct{ Index, Term uint64 }
	Last      uint64
}

// RecordKind names what a record says.
type RecordKind string

// The kinds of records: docs/format/log.md.
const (
	RecordEntry     RecordKind = "entry"
	RecordCopy      RecordKind = "copy"
	RecordHardState RecordKind = "hard-state"
	RecordTrim      RecordKind = "trim"
	RecordState     RecordKind = "state"
	RecordReset     RecordKind = "reset"
)

// Inspect reads the log in dir, of a process that has ended, and changes nothing there.
// It calls record for every record of every intact frame, oldest first, and segment behind
// those of each file; an error of either ends it and is returned. Damage is no error: it
// goes on behind it. It holds one segment in memory.
//
// Records that were replaced or trimmed later are among them; Open with ReadOnly says what
// counts, where nothing is damaged.
func Inspect(fs vfs.FS, dir string, segment func(Segment) error, record func(Record) error) (err error) {
	l := newLog(dir, state.Options{FS: fs, ReadOnly: true})
	defer func() { err = errors.Join(err, l.Close()) }()
	numbers, err := l.openSegments()
	if err != nil {
		return err
	}
	uses, err := l.uses(numbers)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		if err := l.inspect(l.segments[uint32(number)], uses[number], segment, record); err != nil {
			return err
		}
	}
	return nil
}

// known is what the segments that continue one say of it.
type known struct {
	use     Use
	inc     incarnation // zero where nobody says it
	durable int64       // below zero: as the segment's own marks say
}

// uses finds out which segments are the log. It is findEnd and findChain for a log that
// may be damaged anywhere.
func (l *Log) uses(numbers []uint64) (map[uint64]known, error) {
	out := map[uint64]known{}
	for _, number := range numbers {
		out[number] = known{use: UseSpare, durable: -1}
	}
	var h segmentHeader
	whole := false
	for _, number := range slices.Backward(numbers) {
		sc, err := scan(l.segments[uint32(number)])
		if err != nil {
			return nil, err
		}
		if sc.begun() || sc.synced > sc.end {
			out[number] = known{use: UseActive, durable: -1}
			h, whole = sc.header, sc.whole
			if !whole {
				h.number = number
			}
			break
		}
	}
	for whole && h.previous != 0 {
		s := l.segments[uint32(h.previous)]
		if s == nil {
			break // Recycled: nothing in it was wanted.
		}
		out[s.number] = known{use: UseChain, inc: h.previousInc, durable: h.previousEnd}
		previous, ok, err := readHeader(s)
		if err != nil {
			return nil, err
		}
		whole = ok && previous.inc == h.previousInc
		h = previous
		h.number = s.number
	}
	for _, number := range numbers {
		if !whole && number < h.number {
			out[number] = known{use: UseUnlinked, durable: -1}
		}
	}
	return out, nil
}

// inspect returns what one segment holds.
func (l *Log) inspect(s *segment, k known, segment func(Segment) error, visit func(Record) error) error {
	out := Segment{Number: s.number, Path: s.path, Bytes: s.size, Use: k.use}
	if k.use == UseSpare {
		return segment(out)
	}
	sc, err := scan(s)
	if err != nil {
		return err
	}
	out.HeaderDamaged = !sc.whole || k.inc != (incarnation{}) && k.inc != sc.header.inc
	out.Continues, out.Durable = sc.header.previous, max(k.durable, sc.synced)
	if k.durable >= 0 {
		out.Durable = k.durable
	}
	inc := sc.header.inc
	if out.HeaderDamaged {
		out.Continues = 0
		if inc = k.inc; inc == (incarnation{}) {
			inc = sc.anyIncarnation()
		}
	}
	var sd seed
	out.End = pageBytes
	for at := int64(pageBytes); at < s.size; {
		f, ok := parseFrame(&sd, sc.data[at:], s.number, inc, at)
		switch {
		case ok && (k.durable < 0 || at < k.durable):
			if err := inspectFrame(sc, f, &out, visit); err != nil {
				return err
			}
			at += f.size()
			out.End = at
			continue
		case at >= out.Durable:
			return segment(out)
		}
		if n := len(out.Damage); n > 0 && out.Damage[n-1].To == at {
			out.Damage[n-1].To = at + pageBytes
		} else {
			out.Damage = append(out.Damage, Span{at, at + pageBytes})
		}
		at += pageBytes
	}
	return segment(out)
}

// anyIncarnation is that of the first frame header that can be read.
func (sc *scanned) anyIncarnation() incarnation {
	for at := int64(pageBytes); at < sc.segment.size; at += pageBytes {
		if f, ok := decodeFrameHeader(sc.data[at:], sc.segment.number, at); ok {
			return f.inc
		}
	}
	return incarnation{}
}

func inspectFrame(sc *scanned, f frameHeader, out *Segment, visit func(Record) error) error {
	var err error
	parseErr := eachRecord(sc.payload(f), func(r record, pos int) {
		if err != nil {
			return
		}
		out.Records++
		at := f.offset + headerBytes + int64(pos)
		err = visit(r.describe(sc.segment.number, at, f.offset+f.size() <= out.Durable))
	})
	if parseErr != nil {
		err = fmt.Errorf("%s at %d: %w", sc.segment.path, f.offset, parseErr)
	}
	return err
}

func (r record) describe(segment uint64, at int64, durable bool) Record {
	out := Record{Segment: segment, Offset: at, Durable: durable, Range: r.id}
	switch r.kind {
	case recordEntry, recordCopy:
		out.Kind = RecordEntry
		if r.kind == recordCopy {
			out.Kind = RecordCopy
		}
		out.Index, out.Term, out.EntryType, out.Data = r.n[0], r.n[1], pb.EntryType(r.entryType), r.data
	case recordTrim:
		out.Kind, out.Index, out.Term = RecordTrim, r.n[0], r.n[1]
	case recordReset:
		out.Kind, out.Index, out.Term = RecordReset, r.n[0], r.n[1]
	case recordState:
		out.Kind = RecordState
		out.Truncated.Index, out.Truncated.Term, out.Last = r.n[3], r.n[4], r.n[5]
	case recordHardState:
		out.Kind = RecordHardState
	}
	if out.Kind == RecordState || out.Kind == RecordHardState {
		out.HardState.Term, out.HardState.Vote, out.HardState.Commit = r.n[0], r.n[1], r.n[2]
	}
	return out
}
