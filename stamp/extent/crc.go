package extent

import (
	"encoding/binary"
	"hash/crc32"

	"antipode/internal/crc"
)

// A payload has a CRC of its own and one for each slice. Both come from one pass over
// the bytes: the CRC of two strings in a row follows from their CRCs and the second
// one's length, since appending n bytes multiplies by x^8n modulo the polynomial. A
// second pass over 4 MiB for each of three nodes would cost a millisecond.

// crcOne is the polynomial 1, in the bit order of CRC32C: the highest bit is x^0.
const crcOne = uint32(1) << 31

// crcMul multiplies two polynomials modulo that of CRC32C.
func crcMul(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&crcOne != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}

// crcShift returns x^8n modulo the polynomial.
func crcShift(n uint32) uint32 {
	shift, square := crcOne, crcOne>>8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = crcMul(shift, square)
		}
		square = crcMul(square, square)
	}
	return shift
}

// crcJoin returns the CRC of two strings in a row; shift is crcShift of the length of
// the second.
func crcJoin(first, second, shift uint32) uint32 { return crcMul(first, shift) ^ second }

// summer sums a payload slice by slice.
type summer struct {
	id ChunkID
	// shift is that of shiftOf bytes, kept because all slices but the last have one length.
	shift   uint32
	shiftOf int
	// number of slices summed, and the CRC of all of them.
	number uint32
	total  uint32
	// name is the id and the number, here because it would be on the heap for each slice.
	name [20]byte
}

// add returns the CRC of the next slice as it stands in the file, which covers the
// chunk's id and the slice's number besides its bytes: a slice of another chunk, or of
// another place in this one, is refused though it is whole in itself.
func (s *summer) add(slice []byte) uint32 {
	if s.shiftOf != len(slice) {
		s.shift, s.shiftOf = crcShift(uint32(len(slice))), len(slice)
	}
	plain := crc.Of(slice)
	s.total = crcJoin(s.total, plain, s.shift)
	copy(s.name[:], s.id[:])
	binary.LittleEndian.PutUint32(s.name[len(s.id):], s.number)
	s.number++
	return crcJoin(crc.Of(s.name[:]), plain, s.shift)
}
