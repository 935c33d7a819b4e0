package change

import (
	"encoding/binary"

	"antipode/geo"
)

// Volume is how much the records of a stream up to one of them take.
type Volume struct {
	// Bytes sums the encoded records, Payload the lengths of the chunks that they name. A chunk counts
	// for each record that names it, and also while the account still has it.
	Bytes, Payload uint64
}

// Add returns the volume with a record more.
func (v Volume) Add(r *Record, encoded []byte) Volume {
	v.Bytes += uint64(len(encoded))
	for _, ref := range r.Chunks {
		v.Payload += uint64(ref.Length)
	}
	return v
}

// OutboxHead is a place in a stream at its source: a record, and the volume of the stream up to it,
// records that were deleted since included. The difference of two is what lies between them, so nobody has
// to read or remember the records to know how much waits.
type OutboxHead struct {
	geo.Head
	Volume
}

func appendOutboxHead(dst []byte, h OutboxHead) []byte {
	for _, v := range [...]uint64{uint64(h.Seq), uint64(h.Hash), h.Bytes, h.Payload} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

func readOutboxHead(rd *reader) OutboxHead {
	seq, hash := geo.Seq(rd.uint64()), geo.Hash(rd.uint64())
	bytes, payload := rd.uint64(), rd.uint64()
	return OutboxHead{geo.Head{Seq: seq, Hash: hash}, Volume{Bytes: bytes, Payload: payload}}
}

// AppendOutboxHead appends an encoded outbox head: the value of a stream's head and of how far it
// is trimmed.
func AppendOutboxHead(dst []byte, h OutboxHead) []byte {
	return appendOutboxHead(append(dst, formatVersion), h)
}

// ParseOutboxHead decodes an outbox head that fills b.
func ParseOutboxHead(b []byte) (OutboxHead, error) {
	rd := reader{b: b}
	rd.version()
	h := readOutboxHead(&rd)
	if err := rd.end(); err != nil {
		return OutboxHead{}, err
	}
	return h, nil
}

// outboxRowHeader is the length of what precedes the record in a row of the outbox.
const outboxRowHeader = 16

// AppendOutboxRow appends the value of a row of the outbox: the volume of the stream's records
// before this one, then the encoded record.
func AppendOutboxRow(dst []byte, before Volume, encoded []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, before.Bytes)
	dst = binary.LittleEndian.AppendUint64(dst, before.Payload)
	return append(dst, encoded...)
}

// ParseOutboxRow splits the value of a row of the outbox. It does not check the record, which
// aliases b.
func ParseOutboxRow(b []byte) (before Volume, encoded []byte, err error) {
	if len(b) < outboxRowHeader {
		return Volume{}, nil, ErrMalformed
	}
	before = Volume{Bytes: binary.LittleEndian.Uint64(b), Payload: binary.LittleEndian.Uint64(b[8:])}
	return before, b[outboxRowHeader:], nil
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
