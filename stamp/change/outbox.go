package change

import (
	"encoding/binary"

	"antipode/geo"
)

// OutboxHead is a place in a stream at its source: a record, and how many bytes of records the
// stream has up to it. The difference of two is what lies between them, so nobody has to read or
// remember the records to know how much waits.
type OutboxHead struct {
	geo.Head
	// Bytes sums the encoded records of the stream up to Seq, those that were deleted since
	// included.
	Bytes uint64
}

func appendOutboxHead(dst []byte, h OutboxHead) []byte {
	for _, v := range [...]uint64{uint64(h.Seq), uint64(h.Hash), h.Bytes} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

func readOutboxHead(rd *reader) OutboxHead {
	seq, hash := geo.Seq(rd.uint64()), geo.Hash(rd.uint64())
	return OutboxHead{geo.Head{Seq: seq, Hash: hash}, rd.uint64()}
}

// AppendOutboxHead appends an encoded outbox head: the value of a stream's head and of how far it
// is trimmed.
func AppendOutboxHead(dst []byte, h OutboxHead) []byte {
	return appendOutboxHead(append(dst, formatVersion), h)
}

// ParseOutboxHead decodes an outbox head that fills b.
func ParseOutboxHead(b []byte) (OutboxHead, error) {
	rd := reader{b: b}
	version := rd.byte()
	h := readOutboxHead(&rd)
	if rd.failed || version != formatVersion || len(rd.b) != 0 {
		return OutboxHead{}, ErrMalformed
	}
	return h, nil
}

// outboxRowHeader is the length of what precedes the record in a row of the outbox.
const outboxRowHeader = 8

// AppendOutboxRow appends the value of a row of the outbox: the bytes of the stream's records
// before this one, then the encoded record.
func AppendOutboxRow(dst []byte, before uint64, encoded []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, before), encoded...)
}

// ParseOutboxRow splits the value of a row of the outbox. It does not check the record, which
// aliases b.
func ParseOutboxRow(b []byte) (before uint64, encoded []byte, err error) {
	if len(b) < outboxRowHeader {
		return 0, nil, ErrMalformed
	}
	return binary.LittleEndian.Uint64(b), b[outboxRowHeader:], nil
}

// Trim appends the deletion of a stream's outbox up to a record.
func (b *Builder) Trim(s geo.Stream, to OutboxHead) {
	start := b.begin(PartTrim)
	b.buf = appendOutboxHead(appendStream(b.buf, s), to)
	b.end(start)
}

// ParseTrim decodes a PartTrim.
func ParseTrim(b []byte) (geo.Stream, OutboxHead, error) {
	rd := reader{b: b}
	s := readStream(&rd)
	to := readOutboxHead(&rd)
	if rd.failed || len(rd.b) != 0 {
		return geo.Stream{}, OutboxHead{}, ErrMalformed
	}
	return s, to, nil
}
