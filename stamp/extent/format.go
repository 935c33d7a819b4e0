package extent

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// The bytes of an extent file, as docs/format/extent.md describes them. Everything
// stands on a multiple of recordBytes, so that a scanner that lost its place finds
// the next record by trying each of those. Integers are little-endian.
const (
	recordBytes   = 64
	formatVersion = 1
	crcBytes      = 4

	magicFile    = "ANTIPEXT"
	magicChunk   = uint32('A') | 'X'<<8 | 'C'<<16 | 'H'<<24
	magicTrailer = uint32('A') | 'X'<<8 | 'C'<<16 | 'T'<<24
	magicMark    = uint32('A') | 'X'<<8 | 'M'<<16 | 'K'<<24

	// Offsets within a record.
	atVersion     = 8
	atID          = 4
	atLength      = 20
	atPayloadCRC  = 24
	atSliceBytes  = 28
	atSynced      = 4
	atOffset      = 32
	atIncarnation = 40
	atCRC         = 60
)

// incarnation tells two lives of one file name apart. Every record repeats it under
// its CRC, so that a payload which imitates a record, or a block left over from a
// removed file, is not taken for one.
type incarnation [8]byte

// record is one decoded header, trailer or mark.
type record struct {
	magic uint32
	inc   incarnation
	// offset is the start of the chunk for a header and its trailer, and the mark's
	// own place for a mark. In bytes from the start of the file.
	offset int64

	// ref and sliceBytes are set for a header and a trailer.
	ref        Ref
	sliceBytes uint32

	// synced is set for a mark: all bytes before it were durable when the mark
	// was written.
	synced int64
}

// end is the offset behind the record, or behind the whole chunk for a header and
// a trailer.
func (r record) end() int64 {
	if r.magic == magicMark {
		return r.offset + recordBytes
	}
	return r.offset + chunkBytes(r.ref.Length, r.sliceBytes)
}

// place is where the record itself stands.
func (r record) place() int64 {
	if r.magic == magicTrailer {
		return r.end() - recordBytes
	}
	return r.offset
}

// slicedBytes is the size of a payload with the CRCs of its slices.
func slicedBytes(length, sliceBytes uint32) int64 {
	count := (int64(length) + int64(sliceBytes) - 1) / int64(sliceBytes)
	return int64(length) + count*crcBytes
}

// chunkBytes is the room a chunk takes: header, slices, padding, trailer.
func chunkBytes(length, sliceBytes uint32) int64 {
	sliced := slicedBytes(length, sliceBytes)
	padded := (sliced + recordBytes - 1) / recordBytes * recordBytes
	return recordBytes + padded + recordBytes
}

// encodeFileHeader returns the first record of a file.
func encodeFileHeader(inc incarnation) []byte {
	b := make([]byte, recordBytes)
	copy(b, magicFile)
	binary.LittleEndian.PutUint32(b[atVersion:], formatVersion)
	copy(b[atIncarnation:], inc[:])
	sealRecord(b)
	return b
}

// decodeFileHeader reads the first record of a file. ok is false if the bytes are
// no file header; the error is ErrFormat if they are one of another version.
func decodeFileHeader(b []byte) (inc incarnation, ok bool, err error) {
	if !recordSealed(b) || string(b[:len(magicFile)]) != magicFile {
		return inc, false, nil
	}
	if v := binary.LittleEndian.Uint32(b[atVersion:]); v != formatVersion {
		return inc, false, fmt.Errorf("%w: version %d, this program knows %d", ErrFormat, v, formatVersion)
	}
	copy(inc[:], b[atIncarnation:])
	if !slices.Equal(encodeFileHeader(inc), b) {
		return inc, false, nil
	}
	return inc, true, nil
}

// encode writes the record into b, which is recordBytes long.
func (r record) encode(b []byte) {
	clear(b)
	binary.LittleEndian.PutUint32(b, r.magic)
	if r.magic == magicMark {
		binary.LittleEndian.PutUint64(b[atSynced:], uint64(r.synced))
	} else {
		copy(b[atID:], r.ref.ID[:])
		binary.LittleEndian.PutUint32(b[atLength:], r.ref.Length)
		binary.LittleEndian.PutUint32(b[atPayloadCRC:], r.ref.CRC)
		binary.LittleEndian.PutUint32(b[atSliceBytes:], r.sliceBytes)
	}
	binary.LittleEndian.PutUint64(b[atOffset:], uint64(r.offset))
	copy(b[atIncarnation:], r.inc[:])
	sealRecord(b)
}

// decodeRecord reads the record that stands at offset at, whatever incarnation it
// claims. ok is false for anything that encode would not have written there.
func decodeRecord(b []byte, at int64) (r record, ok bool) {
	r.magic = binary.LittleEndian.Uint32(b)
	switch r.magic {
	case magicChunk, magicTrailer, magicMark:
	default:
		return record{}, false
	}
	if !recordSealed(b) {
		return record{}, false
	}
	r.offset = int64(binary.LittleEndian.Uint64(b[atOffset:]))
	copy(r.inc[:], b[atIncarnation:])
	if r.magic == magicMark {
		r.synced = int64(binary.LittleEndian.Uint64(b[atSynced:]))
		ok = r.synced >= recordBytes && r.synced <= at
	} else {
		copy(r.ref.ID[:], b[atID:])
		r.ref.Length = binary.LittleEndian.Uint32(b[atLength:])
		r.ref.CRC = binary.LittleEndian.Uint32(b[atPayloadCRC:])
		r.sliceBytes = binary.LittleEndian.Uint32(b[atSliceBytes:])
		ok = r.ref.check() == nil && r.sliceBytes >= sliceBytesMin && r.sliceBytes <= sliceBytesMax
	}
	if !ok || r.offset < recordBytes || r.offset > at || r.place() != at {
		return record{}, false
	}
	// What decodes must encode to the same bytes: reserved ones are zero.
	var again [recordBytes]byte
	r.encode(again[:])
	return r, string(again[:]) == string(b)
}

func sealRecord(b []byte) {
	binary.LittleEndian.PutUint32(b[atCRC:], crc32.Checksum(b[:atCRC], castagnoli))
}

func recordSealed(b []byte) bool {
	return binary.LittleEndian.Uint32(b[atCRC:]) == crc32.Checksum(b[:atCRC], castagnoli)
}

// sliceCRC covers the chunk's id and the slice's number besides its bytes: a slice
// of another chunk in this place is refused though it is whole in itself.
func sliceCRC(id ChunkID, number uint32, slice []byte) uint32 {
	var seed [len(id) + 4]byte
	copy(seed[:], id[:])
	binary.LittleEndian.PutUint32(seed[len(id):], number)
	return crc32.Update(crc32.Checksum(seed[:], castagnoli), castagnoli, slice)
}

// encodeSlices lays the payload out in b behind the room for the header, and leaves
// room for the trailer: both name the offset, which is not known yet. It returns
// the CRC32C of the payload as copied, so that bytes which the caller changes
// meanwhile are caught.
func encodeSlices(b []byte, id ChunkID, data []byte, sliceBytes int) (payloadCRC uint32) {
	at := recordBytes
	for number := uint32(0); len(data) > 0; number++ {
		n := copy(b[at:at+min(sliceBytes, len(data))], data)
		slice := b[at : at+n]
		payloadCRC = crc32.Update(payloadCRC, castagnoli, slice)
		binary.LittleEndian.PutUint32(b[at+n:], sliceCRC(id, number, slice))
		at += n + crcBytes
		data = data[n:]
	}
	clear(b[at : len(b)-recordBytes])
	return payloadCRC
}

// frame writes header and trailer around encoded slices, for a chunk that will
// start at offset.
func frame(b []byte, ref Ref, sliceBytes uint32, inc incarnation, offset int64) {
	r := record{magic: magicChunk, inc: inc, offset: offset, ref: ref, sliceBytes: sliceBytes}
	r.encode(b[:recordBytes])
	r.magic = magicTrailer
	r.encode(b[len(b)-recordBytes:])
}
