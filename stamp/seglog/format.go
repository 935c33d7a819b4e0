package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/feature"
)

// The bytes of a segment, as docs/format/log.md describes them. A segment is a page
// with its header and then frames, each a whole number of pages. A frame is a header,
// records one behind the other, and zeros. Integers are little-endian.
const (
	pageBytes     = 4096
	headerBytes   = 64 // of a segment and of a frame
	recordBytes   = 16 // what every record begins with
	entryBytes    = recordBytes + 16
	formatVersion = 1

	magicSegment = "ANTIPLOG"
	magicFrame   = uint32('A') | 'S'<<8 | 'F'<<16 | 'R'<<24

	// Offsets within both headers.
	atOffset      = 32
	atIncarnation = 40
	atCRC         = 60
	// Offsets within a segment's header.
	atVersion             = 8
	atNumber              = 16
	atPrevious            = 24
	atPreviousEnd         = 32
	atPreviousIncarnation = 48
	// Offsets within a frame's header.
	atPayload     = 4
	atFrameKind   = 8
	atSynced      = 16
	atFrameNumber = 24
	// Offsets within a record.
	atLength    = 4
	atKind      = 8
	atEntryType = 9
	atRange     = 12
)

// ErrVersion: the log was written in a format that this program does not know.
var ErrVersion = errors.New("seglog: another format version")

// incarnation distinguishes two uses of one file. Every frame and record has it under
// its CRC.
type incarnation [8]byte

// segmentHeader is the first record of a segment.
type segmentHeader struct {
	number uint64
	inc    incarnation
	// previous is the segment whose log this one continues, 0 for none. Everything
	// of it before previousEnd was durable when this header was written, and nothing
	// of it behind counts.
	previous    uint64
	previousEnd int64
	previousInc incarnation
}

func (h segmentHeader) encode(b []byte) {
	b = b[:headerBytes]
	clear(b)
	copy(b, magicSegment)
	binary.LittleEndian.PutUint32(b[atVersion:], formatVersion)
	binary.LittleEndian.PutUint64(b[atNumber:], h.number)
	binary.LittleEndian.PutUint64(b[atPrevious:], h.previous)
	binary.LittleEndian.PutUint64(b[atPreviousEnd:], uint64(h.previousEnd))
	copy(b[atIncarnation:], h.inc[:])
	copy(b[atPreviousIncarnation:], h.previousInc[:])
	sealHeader(b)
}

// decodeSegmentHeader reads the header of segment number. ok is false for anything
// that encode would not have written there; the error is ErrVersion for the header of
// another format.
func decodeSegmentHeader(b []byte, number uint64) (h segmentHeader, ok bool, err error) {
	if len(b) < headerBytes || !headerSealed(b) || string(b[:len(magicSegment)]) != magicSegment {
		return h, false, nil
	}
	if v := binary.LittleEndian.Uint32(b[atVersion:]); v != formatVersion {
		return h, false, fmt.Errorf("%w: %w", ErrVersion, feature.Later("the log", uint64(v), formatVersion))
	}
	h = segmentHeader{
		number: binary.LittleEndian.Uint64(b[atNumber:]), previous: binary.LittleEndian.Uint64(b[atPrevious:]),
		previousEnd: int64(binary.LittleEndian.Uint64(b[atPreviousEnd:])),
	}
	copy(h.inc[:], b[atIncarnation:])
	copy(h.previousInc[:], b[atPreviousIncarnation:])
	var again [headerBytes]byte
	h.encode(again[:])
	return h, h.number == number && h.previous < h.number && string(again[:]) == string(b[:headerBytes]), nil
}

// frameKind says what a frame holds.
type frameKind uint32

const (
	// frameState is the first frame of a segment: the state of every range.
	frameState frameKind = 1
	// frameBatch is what one write appended.
	frameBatch frameKind = 2
)

// frameHeader is what a frame begins with.
type frameHeader struct {
	kind    frameKind
	payload uint32 // bytes of records
	// synced: every byte of the segment before it was durable when the frame was
	// written. At most offset.
	synced int64
	number uint64
	offset int64
	inc    incarnation
}

// size is the room that the frame takes.
func (f frameHeader) size() int64 { return pages(headerBytes + int64(f.payload)) }

func (f frameHeader) encode(b []byte) {
	b = b[:headerBytes]
	clear(b)
	binary.LittleEndian.PutUint32(b, magicFrame)
	binary.LittleEndian.PutUint32(b[atPayload:], f.payload)
	binary.LittleEndian.PutUint32(b[atFrameKind:], uint32(f.kind))
	binary.LittleEndian.PutUint64(b[atSynced:], uint64(f.synced))
	binary.LittleEndian.PutUint64(b[atFrameNumber:], f.number)
	binary.LittleEndian.PutUint64(b[atOffset:], uint64(f.offset))
	copy(b[atIncarnation:], f.inc[:])
	sealHeader(b)
}

// decodeFrameHeader reads the frame header at offset at of segment number. ok is false
// for anything that encode would not have written there.
func decodeFrameHeader(b []byte, number uint64, at int64) (f frameHeader, ok bool) {
	if len(b) < headerBytes || binary.LittleEndian.Uint32(b) != magicFrame || !headerSealed(b) {
		return f, false
	}
	f = frameHeader{
		payload: binary.LittleEndian.Uint32(b[atPayload:]), kind: frameKind(binary.LittleEndian.Uint32(b[atFrameKind:])),
		synced: int64(binary.LittleEndian.Uint64(b[atSynced:])), number: binary.LittleEndian.Uint64(b[atFrameNumber:]),
		offset: int64(binary.LittleEndian.Uint64(b[atOffset:])),
	}
	copy(f.inc[:], b[atIncarnation:])
	if f.kind != frameState && f.kind != frameBatch || f.number != number || f.offset != at || f.synced < 0 || f.synced > at {
		return f, false
	}
	var again [headerBytes]byte
	f.encode(again[:])
	return f, string(again[:]) == string(b[:headerBytes])
}

// recordKind says what a record holds. Durable: never given to something else.
type recordKind uint8

const (
	// recordEntry appends an entry; what the range had from its index on is gone.
	recordEntry recordKind = 1
	// recordCopy repeats a live entry from an older segment. It fills an index and
	// changes nothing else.
	recordCopy recordKind = 2
	// recordHardState: term, vote, commit.
	recordHardState recordKind = 3
	// recordTrim: index, term of the last entry that is trimmed.
	recordTrim recordKind = 4
	// recordState is a range's state: term, vote, commit, trimmed index and its term,
	// last index.
	recordState recordKind = 5
	// recordReset: index and term behind which the log begins again, without an entry.
	recordReset recordKind = 6
)

// numbers is how many numbers a record of the kind has; 0 for no such kind.
func (k recordKind) numbers() int {
	switch k {
	case recordEntry, recordCopy, recordTrim, recordReset:
		return 2
	case recordHardState:
		return 3
	case recordState:
		return 6
	}
	return 0
}

// record is one decoded record.
type record struct {
	kind      recordKind
	entryType uint8
	id        geo.RangeID
	// n are its numbers: see the kinds. For an entry index and term.
	n    [6]uint64
	data []byte // of an entry; shares the memory it was read from
	size int
}

// appendRecord adds an unsealed record: its CRC covers the place, which is known when
// its frame is written.
func appendRecord(dst []byte, kind recordKind, entryType uint8, id geo.RangeID, data []byte, numbers ...uint64) []byte {
	size := recordBytes + 8*len(numbers) + len(data)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, byte(kind), entryType, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return append(dst, data...)
}

// seed is the room for what a record's CRC covers before the record itself. It is a field
// of the type that seals many records, since the checksum makes it escape.
type seed [16]byte

func (s *seed) crc(inc incarnation, at int64, rec []byte) uint32 {
	copy(s[:], inc[:])
	binary.LittleEndian.PutUint64(s[8:], uint64(at))
	return crc.Join(crc.Of(s[:]), rec[4:])
}

// recordLength is the length of the record that b begins with; 0 if it has none that
// could be.
func recordLength(b []byte) int {
	if len(b) < recordBytes {
		return 0
	}
	n := binary.LittleEndian.Uint32(b[atLength:])
	if uint64(n) < recordBytes || uint64(n) > uint64(len(b)) {
		return 0
	}
	return int(n)
}

// sealRecords gives each record of a payload that will stand at offset at its CRC.
func sealRecords(s *seed, payload []byte, inc incarnation, at int64) {
	for len(payload) > 0 {
		n := recordLength(payload)
		binary.LittleEndian.PutUint32(payload, s.crc(inc, at, payload[:n]))
		payload = payload[n:]
		at += int64(n)
	}
}

// parseRecord reads the record at the start of b, which stands at offset at. ok is
// false for anything that was not written there in this incarnation.
func parseRecord(s *seed, b []byte, inc incarnation, at int64) (r record, ok bool) {
	n := recordLength(b)
	if n == 0 || s.crc(inc, at, b[:n]) != binary.LittleEndian.Uint32(b) {
		return r, false
	}
	return decodeRecord(b)
}

// decodeRecord is parseRecord without the checksum.
func decodeRecord(b []byte) (r record, ok bool) {
	n := recordLength(b)
	if n == 0 {
		return r, false
	}
	r = record{
		kind: recordKind(b[atKind]), entryType: b[atEntryType], size: n,
		id: geo.RangeID(binary.LittleEndian.Uint32(b[atRange:])),
	}
	count := r.kind.numbers()
	body := recordBytes + 8*count
	isEntry := r.kind == recordEntry || r.kind == recordCopy
	if count == 0 || n < body || !isEntry && (n != body || r.entryType != 0) || b[10] != 0 || b[11] != 0 {
		return r, false
	}
	for i := range count {
		r.n[i] = binary.LittleEndian.Uint64(b[recordBytes+8*i:])
	}
	r.data = b[body:n:n]
	return r, true
}

// parseFrame reads the frame at offset at of segment number, records included, from b,
// which begins there. ok is false unless every byte of it is as it was written.
func parseFrame(s *seed, b []byte, number uint64, inc incarnation, at int64) (f frameHeader, ok bool) {
	f, ok = decodeFrameHeader(b, number, at)
	if !ok || f.inc != inc || f.size() > int64(len(b)) {
		return f, false
	}
	end := headerBytes + int64(f.payload)
	for pos := int64(headerBytes); pos < end; {
		r, ok := parseRecord(s, b[pos:end], inc, at+pos)
		if !ok || (r.kind == recordState) != (f.kind == frameState) {
			return f, false
		}
		pos += int64(r.size)
	}
	for _, c := range b[end:f.size()] {
		if c != 0 {
			return f, false
		}
	}
	return f, true
}

// pages rounds up to whole pages.
func pages(n int64) int64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

func sealHeader(b []byte) {
	binary.LittleEndian.PutUint32(b[atCRC:], crc.Of(b[:atCRC]))
}

func headerSealed(b []byte) bool {
	return binary.LittleEndian.Uint32(b[atCRC:]) == crc.Of(b[:atCRC])
}
