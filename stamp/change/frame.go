package change

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/internal/crc"
)

// FrameBytesMax is where a frame is cut (R12). A single larger record travels alone.
const FrameBytesMax = 256 << 10

// Frame is one message of the geo stream: records of one range in commit order,
// then a closed record.
type Frame struct {
	Origin geo.Location
	Range  geo.RangeID
	// Records are encoded records, in commit order. They alias the parsed bytes.
	Records [][]byte
	// Closed ends the frame; nil in a frame that only carries records ahead of it.
	Closed *Closed
}

// AppendFrame appends the encoded frame.
func AppendFrame(dst []byte, f *Frame) []byte {
	start := len(dst)
	flags := byte(0)
	if f.Closed != nil {
		flags = 1
	}
	dst = append(dst, formatVersion, flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Range))
	dst = appendShort(dst, string(f.Origin))
	dst = binary.AppendUvarint(dst, uint64(len(f.Records)))
	for _, r := range f.Records {
		dst = append(dst, r...)
	}
	if f.Closed != nil {
		dst = AppendClosed(dst, f.Closed)
	}
	return binary.LittleEndian.AppendUint32(dst, crc.Of(dst[start:]))
}

// ParseFrame decodes a frame that fills b. The records are cut, not parsed: each
// carries its own CRC, and one bad record must not hide the others.
func ParseFrame(b []byte) (Frame, error) {
	var f Frame
	if len(b) < crcLen+2 {
		return f, ErrMalformed
	}
	body := b[:len(b)-crcLen]
	if crc.Of(body) != binary.LittleEndian.Uint32(b[len(b)-crcLen:]) {
		return f, ErrChecksum
	}
	rd := reader{b: body}
	version, flags := rd.byte(), rd.byte()
	if version != formatVersion {
		return f, ErrVersion
	}
	f.Range = geo.RangeID(rd.uint32())
	f.Origin = geo.Location(rd.short())
	count := rd.count(recHeader + crcLen)
	if count > 0 {
		f.Records = make([][]byte, 0, count)
	}
	for range count {
		n, err := RecordLen(rd.b)
		if err != nil {
			return Frame{}, err
		}
		f.Records = append(f.Records, rd.take(n))
	}
	if flags == 1 {
		c := readClosed(&rd)
		f.Closed = &c
	}
	if rd.failed || flags > 1 || len(rd.b) != 0 {
		return Frame{}, ErrMalformed
	}
	return f, nil
}
