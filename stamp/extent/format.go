package extent

import (
	"encoding/binary"
	"fmt"
	"slices"

	"antipode/internal/crc"
	"antipode/stamp/feature"
)

// The bytes of an extent file, as docs/format/extent.md describes them. Records stand
// on multiples of recordBytes, so that a scanner that lost its place finds the next one
// by trying each of those. Integers are little-endian.
const (
	recordBytes   = 64
	formatVersion = 2
	crcBytes      = 4
	// pageBytes is the unit of what is written past the page cache, in the file and in
	// memory, and the room of the file header.
	pageBytes = 4096

	magicFile    = "ANTIPEXT"
	magicChunk   = uint32('A') | 'X'<<8 | 'C'<<16 | 'H'<<24
	magicTrailer = uint32('A') | 'X'<<8 | 'C'<<16 | 'T'<<24
	magicSeal    = uint32('A') | 'X'<<8 | 'S'<<16 | 'L'<<24

	// Offsets within a record.
	atVersion     = 8
	atID          = 4
	atLength      = 20
	atPayloadCRC  = 24
	atSliceBytes  = 28
	atOffset      = 32
	atIncarnation = 40
	atSynced      = 48
	atUnit        = 56
	atCRC         = 60
)

// incarnation distinguishes two lives of one file. Every record repeats it under its CRC, so that a
// payload which imitates a record, or what the file held before it was recycled, is not taken for
// one. The first half is the low half of the file's new number. That number is above all numbers in
// the folder, and so above those that leftovers name. The other half is random, so that a client
// cannot know it.
type incarnation [8]byte

// record is one decoded header, trailer or seal.
type record struct {
	magic uint32
	inc   incarnation
	// offset is the start of the chunk for a header and its trailer, and the seal's own
	// place for a seal. In bytes from the start of the file.
	offset int64
	// synced: all bytes of the file before it were durable when the record was
	// written. At most offset; equal to it in a seal.
	synced int64

	// The rest is set for a header and a trailer.
	ref        Ref
	sliceBytes uint32
	// unit is recordBytes or pageBytes: what each part of the chunk is a multiple of.
	unit uint32
}

// end is the offset behind the record, or behind the whole chunk for a header and
// a trailer.
func (r record) end() int64 {
	if r.magic == magicSeal {
		return r.offset + recordBytes
	}
	return r.offset + chunkBytes(r.ref.Length, r.sliceBytes, r.unit)
}

// place is where the record itself stands.
func (r record) place() int64 {
	if r.magic == magicTrailer {
		return r.end() - recordBytes
	}
	return r.offset
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// sliceCount is the number of slices in a payload.
func sliceCount(length, sliceBytes uint32) int64 {
	return (int64(length) + int64(sliceBytes) - 1) / int64(sliceBytes)
}

// headBytes is the room of a chunk before its payload: the header and the CRCs of the
// slices.
func headBytes(length, sliceBytes, unit uint32) int64 {
	return roundUp(recordBytes+crcBytes*sliceCount(length, sliceBytes), int64(unit))
}

// chunkBytes is the room a chunk takes: head, payload, padding, and the trailer at the
// very end.
func chunkBytes(length, sliceBytes, unit uint32) int64 {
	return headBytes(length, sliceBytes, unit) + roundUp(int64(length)+recordBytes, int64(unit))
}

// encodeFileHeader returns the first page of a file.
func encodeFileHeader(b []byte, inc incarnation) {
	clear(b)
	copy(b, magicFile)
	binary.LittleEndian.PutUint32(b[atVersion:], formatVersion)
	copy(b[atIncarnation:], inc[:])
	sealRecord(b[:recordBytes])
}

// decodeFileHeader reads the first record of a file. ok is false if the bytes are
// no file header; the error is ErrFormat if they are one of another version.
func decodeFileHeader(b []byte) (inc incarnation, ok bool, err error) {
	if !recordSealed(b) || string(b[:len(magicFile)]) != magicFile {
		return inc, false, nil
	}
	if v := binary.LittleEndian.Uint32(b[atVersion:]); v != formatVersion {
		return inc, false, fmt.Errorf("%w: %w", ErrFormat, feature.Later("an extent file", uint64(v), formatVersion))
	}
	copy(inc[:], b[atIncarnation:])
	var again [recordBytes]byte
	encodeFileHeader(again[:], inc)
	return inc, slices.Equal(again[:], b), nil
}

// encode writes the record into b, which is recordBytes long.
func (r record) encode(b []byte) {
	clear(b)
	binary.LittleEndian.PutUint32(b, r.magic)
	if r.magic != magicSeal {
		copy(b[atID:], r.ref.ID[:])
		binary.LittleEndian.PutUint32(b[atLength:], r.ref.Length)
		binary.LittleEndian.PutUint32(b[atPayloadCRC:], r.ref.CRC)
		binary.LittleEndian.PutUint32(b[atSliceBytes:], r.sliceBytes)
		binary.LittleEndian.PutUint32(b[atUnit:], r.unit)
	}
	binary.LittleEndian.PutUint64(b[atOffset:], uint64(r.offset))
	copy(b[atIncarnation:], r.inc[:])
	binary.LittleEndian.PutUint64(b[atSynced:], uint64(r.synced))
	sealRecord(b)
}

// decodeRecord reads the record that stands at offset at, whatever incarnation it
// claims. ok is false for anything that encode would not have written there.
func decodeRecord(b []byte, at int64) (r record, ok bool) {
	r.magic = binary.LittleEndian.Uint32(b)
	switch r.magic {
	case magicChunk, magicTrailer, magicSeal:
	default:
		return record{}, false
	}
	if !recordSealed(b) {
		return record{}, false
	}
	r.offset = int64(binary.LittleEndian.Uint64(b[atOffset:]))
	r.synced = int64(binary.LittleEndian.Uint64(b[atSynced:]))
	copy(r.inc[:], b[atIncarnation:])
	if r.magic == magicSeal {
		ok = r.synced == r.offset
	} else {
		copy(r.ref.ID[:], b[atID:])
		r.ref.Length = binary.LittleEndian.Uint32(b[atLength:])
		r.ref.CRC = binary.LittleEndian.Uint32(b[atPayloadCRC:])
		r.sliceBytes = binary.LittleEndian.Uint32(b[atSliceBytes:])
		r.unit = binary.LittleEndian.Uint32(b[atUnit:])
		ok = r.ref.check() == nil && r.sliceBytes >= sliceBytesMin && r.sliceBytes <= sliceBytesMax &&
			(r.unit == recordBytes || r.unit == pageBytes) && r.offset%int64(r.unit) == 0
	}
	if !ok || r.offset < pageBytes || r.offset > at || r.synced < pageBytes || r.synced > r.offset || r.place() != at {
		return record{}, false
	}
	// What decodes must encode to the same bytes: reserved ones are zero.
	var again [recordBytes]byte
	r.encode(again[:])
	return r, string(again[:]) == string(b)
}

// laterRecord returns ErrFormat for what decodeRecord refused if it is of a kind that this version does not know, and
// intact and of the file's present life: a later version wrote it. It is no damage.
func laterRecord(b []byte, inc incarnation) error {
	magic := binary.LittleEndian.Uint32(b)
	switch magic {
	case magicChunk, magicTrailer, magicSeal:
		return nil
	}
	if incarnation(b[atIncarnation:atSynced]) != inc || inc == (incarnation{}) || !recordSealed(b) {
		return nil
	}
	return fmt.Errorf("%w: a record of kind %08x: %w", ErrFormat, magic, feature.ErrLater)
}

func sealRecord(b []byte) {
	binary.LittleEndian.PutUint32(b[atCRC:], crc.Of(b[:atCRC]))
}

func recordSealed(b []byte) bool {
	return binary.LittleEndian.Uint32(b[atCRC:]) == crc.Of(b[:atCRC])
}

// encode lays out the chunk for its place: the head in b, behind it in b what follows
// the whole pages of the payload that may be written from where they lie, which it
// returns. Without inPlace all of the payload is copied into b. b has room for that.
// The parts to write, one after the other, are returned in order.
func (c Chunk) encode(b []byte, e *file, synced int64, inPlace bool) [][]byte {
	unit := e.out.unit
	r := record{
		magic: magicChunk, inc: e.inc, offset: e.size, synced: synced,
		ref: c.ref, sliceBytes: c.sliceBytes, unit: unit,
	}
	head := headBytes(c.ref.Length, c.sliceBytes, unit)
	whole := 0
	if inPlace {
		whole = len(c.data) / pageBytes * pageBytes
	}
	b = b[:r.end()-r.offset-int64(whole)]
	r.encode(b[:recordBytes])
	at := recordBytes
	for _, sum := range c.sums {
		binary.LittleEndian.PutUint32(b[at:], sum)
		at += crcBytes
	}
	clear(b[at:head])
	n := copy(b[head:], c.data[whole:])
	clear(b[head+int64(n):])
	r.magic = magicTrailer
	r.encode(b[len(b)-recordBytes:])
	if whole == 0 {
		return [][]byte{b}
	}
	return [][]byte{b[:head], c.data[:whole], b[head:]}
}
