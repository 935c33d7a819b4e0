package change

import (
	"encoding/binary"
	"slices"

	"antipode/geo"
	"antipode/internal/crc"
)

// FrameRecordBytes is what a record takes in a frame beside its own bytes, at most.
const FrameRecordBytes = binary.MaxVarintLen32

// FrameBytesMax is where a frame is cut (R12). A single larger record travels alone.
const FrameBytesMax = 256 << 10

// Frame is one message of the geo stream: records of one range in commit order,
// then a closed record.
type Frame struct {
	Origin geo.Location
	Range  geo.RangeID
	// Records are encoded records, in commit order. They alias the parsed bytes. One of them need not
	// be decodable.
	Records [][]byte
	// Closed ends the frame; nil in a frame that only carries records ahead of it, and with LaterClosed.
	Closed *Closed
	// LaterClosed is the closed record at the end if a later version wrote it: nothing of it is known, and
	// the records before it are worth as much as without it.
	LaterClosed []byte
}

// frameRest is about what a frame takes beside its records, with a closed record of few heads.
const frameRest = 512

// AppendFrame appends the encoded frame.
func AppendFrame(dst []byte, f *Frame) []byte {
	size := frameRest + len(f.Origin) + len(f.LaterClosed)
	for _, r := range f.Records {
		size += FrameRecordBytes + len(r)
	}
	dst = slices.Grow(dst, size)
	start := len(dst)
	flags := byte(0)
	if f.Closed != nil || f.LaterClosed != nil {
		flags = 1
	}
	dst = append(dst, formatVersion, flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Range))
	dst = appendShort(dst, string(f.Origin))
	dst = binary.AppendUvarint(dst, uint64(len(f.Records)))
	for _, r := range f.Records {
		dst = binary.AppendUvarint(dst, uint64(len(r)))
		dst = append(dst, r...)
	}
	if f.Closed != nil {
		dst = AppendClosed(dst, f.Closed)
	}
	dst = append(dst, f.LaterClosed...)
	return binary.LittleEndian.AppendUint32(dst, crc.Of(dst[start:]))
}

// ParseFrame decodes a frame that fills b. The records are cut by the lengths in the frame, not
// parsed: one that this build cannot decode, of whatever version or layout, must not hide the others, and
// neither must a closed record of a later version (R11).
func ParseFrame(b []byte) (Frame, error) {
	var f Frame
	if len(b) < crcLen+2 {
		return f, ErrMalformed
	}
	if !checksumFits(b) {
		return f, ErrChecksum
	}
	rd := reader{b: b[:len(b)-crcLen]}
	version, flags := rd.byte(), rd.byte()
	if err := wrongVersion(version); err != nil {
		return f, err
	}
	f.Range = geo.RangeID(rd.uint32())
	f.Origin = geo.Location(rd.short())
	count := rd.count(1)
	if count > 0 {
		f.Records = make([][]byte, 0, min(count, 1+len(rd.b)/(recHeader+crcLen)))
	}
	for range count {
		f.Records = append(f.Records, rd.bytes())
	}
	switch {
	case flags == 1 && isLaterClosed(rd.b):
		f.LaterClosed, rd.b = rd.b, nil
	case flags == 1:
		c := readClosed(&rd)
		f.Closed = &c
	}
	if rd.failed || flags > 1 || len(rd.b) != 0 {
		return Frame{}, ErrMalformed
	}
	return f, nil
}
