// Package crc is CRC32C (Castagnoli), the checksum of every durable format and of every
// frame. The processor computes it.
package crc

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // A table, never written.

// Of returns the checksum of b.
func Of(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Join returns the checksum of what has the checksum sum, followed by b.
func Join(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// Fits reports whether b ends with the checksum of everything before, in little endian, as many formats do.
func Fits(b []byte) bool {
	const size = 4
	at := len(b) - size
	return at >= 0 && Of(b[:at]) == binary.LittleEndian.Uint32(b[at:])
}
