package change

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/stamp/extent"
)

// Found is a row of the lost-and-found: what a row held before a settlement of its fork overwrote or deleted it
// (R16). Its key has the stream, the base of the settlement, and the key of the row: see keys.Found.
type Found struct {
	// At is when it was kept.
	At geo.Timestamp
	// Chunks is the payload that the row names, as far as the location had it; Missing counts the other chunks.
	Chunks  []extent.Ref
	Missing uint64
	// Value is the row's.
	Value []byte
}

// AppendFound appends the encoded value of a row of the lost-and-found.
func AppendFound(dst []byte, f Found) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, formatVersion), uint64(f.At))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, f.Missing), uint64(len(f.Chunks)))
	for _, c := range f.Chunks {
		dst = appendRef(dst, c)
	}
	return append(dst, f.Value...)
}

// ParseFound decodes the value of a row of the lost-and-found. Value aliases b.
func ParseFound(b []byte) (Found, error) {
	rd := reader{b: b}
	rd.version()
	f := Found{At: geo.Timestamp(rd.uint64()), Missing: rd.uvarint()}
	for range rd.count(chunkLen) {
		f.Chunks = append(f.Chunks, readRef(&rd))
	}
	f.Value, rd.b = rd.b, nil
	if err := rd.end(); err != nil {
		return Found{}, err
	}
	return f, nil
}

func appendRef(dst []byte, c extent.Ref) []byte {
	dst = append(dst, c.ID[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, c.Length)
	return binary.LittleEndian.AppendUint32(dst, c.CRC)
}

func readRef(rd *reader) (c extent.Ref) {
	copy(c.ID[:], rd.take(len(c.ID)))
	c.Length, c.CRC = rd.uint32(), rd.uint32()
	return c
}
