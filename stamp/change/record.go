package change

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/extent"
)

// Errors of decoding and of the chain.
var (
	// ErrMalformed: the bytes are no record, group, frame or closed record.
	ErrMalformed = errors.New("change: malformed")
	// ErrChecksum: the CRC32C does not fit the bytes.
	ErrChecksum = errors.New("change: wrong CRC32C")
	// ErrVersion: a later version wrote it, or its first byte is damaged. There is no earlier one: a byte that names it is
	// ErrMalformed, since no upgrade would mend it.
	ErrVersion = errors.New("change: unknown format version")
)

// formatVersion is the first byte of every record, group, frame and closed record.
const formatVersion = 1

// RecordBytesMax bounds one record. A 4 MiB entity group transaction fits with
// its keys.
const RecordBytesMax = 6 << 20

// Op sets or deletes one key of the record's partition.
type Op struct {
	// Delete deletes the key; Value is empty then.
	Delete bool
	// Row is the key within the partition.
	Row []byte
	// Value is what the key is set to.
	Value []byte
}

// Record is the committed effect of one command on one partition.
type Record struct {
	// Epoch is the epoch it was committed under; its location is the origin.
	Epoch geo.Epoch
	Range geo.RangeID
	// Incarnation is that of Range when the record was numbered.
	Incarnation geo.Incarnation
	Lane        geo.Lane
	Service     geo.Service
	Account     geo.Account
	// Seq numbers the record in its stream; zero is a change that is not
	// shipped (R10).
	Seq geo.Seq
	// Prev is the hash of the record before it in the stream.
	Prev       geo.Hash
	CommitTime geo.Timestamp
	// Partition is the encoded prefix that all keys share (keys.Partition).
	Partition []byte
	Ops       []Op
	// Chunks are the payload chunks the ops name (R3, R9).
	Chunks []extent.Ref
}

// Stream names the stream the record belongs to.
func (r *Record) Stream() geo.Stream {
	return geo.Stream{Account: r.Account, Epoch: r.Epoch, Range: r.Range, Lane: r.Lane}
}

// Fixed offsets of the record header; see docs/format/change.md.
const (
	recLane    = 2
	recService = 3
	recLength  = 4
	recSeq     = 8
	recPrev    = 16
	recTime    = 24
	recEpoch   = 32
	recRange   = 40
	recIncarn  = 44
	recHeader  = 52
	crcLen     = 4
	chunkLen   = 24
)

// AppendRecord appends the encoded record. It refuses what a decoder would.
func AppendRecord(dst []byte, r *Record) ([]byte, error) {
	if len(r.Account) == 0 || len(r.Account) > 255 || len(r.Epoch.Location) > 255 || len(r.Partition) > 1<<16-1 {
		return dst, fmt.Errorf("%w: account, location or partition over its length", ErrMalformed)
	}
	if r.Lane >= geo.LaneCount {
		return dst, fmt.Errorf("%w: lane %d of %d", ErrMalformed, r.Lane, geo.LaneCount)
	}
	start := len(dst)
	dst = append(dst, formatVersion, 0, byte(r.Lane), byte(r.Service), 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Seq))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Prev))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.CommitTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Epoch.Number))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Range))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Incarnation))
	dst = appendShort(dst, string(r.Epoch.Location))
	dst = appendShort(dst, string(r.Account))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(r.Partition)))
	dst = append(dst, r.Partition...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Ops)))
	for _, op := range r.Ops {
		dst = appendOp(dst, op)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Chunks)))
	for _, c := range r.Chunks {
		dst = appendRef(dst, c)
	}
	n := len(dst) - start + crcLen
	if n > RecordBytesMax {
		return dst[:start], fmt.Errorf("%w: record of %d bytes, at most %d", ErrMalformed, n, RecordBytesMax)
	}
	binary.LittleEndian.PutUint32(dst[start+recLength:], uint32(n))
	return binary.LittleEndian.AppendUint32(dst, crc.Of(dst[start:])), nil
}

func appendOp(dst []byte, op Op) []byte {
	kind := byte(opSet)
	if op.Delete {
		kind = opDelete
	}
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(op.Row)))
	dst = append(dst, op.Row...)
	if op.Delete {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(op.Value)))
	return append(dst, op.Value...)
}

const (
	opSet    = 1
	opDelete = 2
)

// appendShort appends a name with its length in one byte. A longer name is a bug of
// the caller: cut, it would be the name of something else.
func appendShort(dst []byte, s string) []byte {
	if len(s) > 255 {
		panic(fmt.Sprintf("change: name of %d bytes, at most 255", len(s)))
	}
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}

// HashOf is the hash that the next record of the stream carries as Prev: over
// the whole encoded record, its own Prev included, so it stands for the chain.
func HashOf(encoded []byte) geo.Hash { return geo.Hash(xxhash.Sum64(encoded)) }

// recordLen returns the length of the record at the front of b, without checking more.
func recordLen(b []byte) (int, error) {
	if len(b) < recHeader+crcLen {
		return 0, ErrMalformed
	}
	if err := wrongVersion(b[0]); err != nil {
		return 0, err
	}
	n := int(binary.LittleEndian.Uint32(b[recLength:]))
	if n < recHeader+crcLen || n > RecordBytesMax || n > len(b) {
		return 0, ErrMalformed
	}
	return n, nil
}

// Names makes no new strings where a record has the same location and account as the one before it. The zero value
// is ready; it is used by one goroutine at a time.
type Names struct {
	location geo.Location
	account  geo.Account
}

// read cuts the location and the account of a record.
func (n *Names) read(rd *reader) (geo.Location, geo.Account) {
	if b := rd.take(int(rd.byte())); string(b) != string(n.location) {
		n.location = geo.Location(b)
	}
	if b := rd.take(int(rd.byte())); string(b) != string(n.account) {
		n.account = geo.Account(b)
	}
	return n.location, n.account
}

// ParseRecord decodes one record that fills b, after checking its CRC32C. The
// byte slices of the result alias b.
func ParseRecord(b []byte) (Record, error) { return new(Names).ParseRecord(b) }

// ParseRecord is the function of that name, for one of many records.
func (n *Names) ParseRecord(b []byte) (Record, error) {
	var r Record
	size, err := recordLen(b)
	if err != nil {
		return r, err
	}
	if size != len(b) {
		return r, ErrMalformed
	}
	body := b[:size-crcLen]
	if crc.Of(body) != binary.LittleEndian.Uint32(b[size-crcLen:]) {
		return r, ErrChecksum
	}
	r.Lane = geo.Lane(b[recLane])
	r.Service = geo.Service(b[recService])
	r.Seq = geo.Seq(binary.LittleEndian.Uint64(b[recSeq:]))
	r.Prev = geo.Hash(binary.LittleEndian.Uint64(b[recPrev:]))
	r.CommitTime = geo.Timestamp(binary.LittleEndian.Uint64(b[recTime:]))
	r.Epoch.Number = geo.EpochNumber(binary.LittleEndian.Uint64(b[recEpoch:]))
	r.Range = geo.RangeID(binary.LittleEndian.Uint32(b[recRange:]))
	r.Incarnation = geo.Incarnation(binary.LittleEndian.Uint64(b[recIncarn:]))
	if b[1] != 0 || r.Lane >= geo.LaneCount {
		return r, ErrMalformed
	}
	return r, n.parseTail(&r, reader{b: body[recHeader:]})
}

func (n *Names) parseTail(r *Record, rd reader) error {
	r.Epoch.Location, r.Account = n.read(&rd)
	r.Partition = rd.take(int(rd.uint16()))
	r.Ops = rd.ops()
	chunks := rd.count(chunkLen)
	for range chunks {
		r.Chunks = append(r.Chunks, readRef(&rd))
	}
	if rd.failed || len(rd.b) != 0 || len(r.Account) == 0 {
		return ErrMalformed
	}
	return nil
}

// ops cuts a count and as many ops.
func (r *reader) ops() (out []Op) {
	count := r.count(2)
	if count > 0 {
		out = make([]Op, 0, count)
	}
	for range count {
		var op Op
		switch r.byte() {
		case opSet:
			op.Row = r.bytes()
			op.Value = r.bytes()
		case opDelete:
			op.Delete = true
			op.Row = r.bytes()
		default:
			r.failed = true
		}
		out = append(out, op)
	}
	return out
}

// Undecodable returns why the stream of a record that ParseRecord refused stops (R11). Records of
// every version begin with it and end with the CRC32C of everything before: with a right checksum
// another version is no damage.
func Undecodable(encoded []byte) StopReason {
	if isLater(encoded) && checksumFits(encoded) {
		return StopVersion
	}
	return StopPoison
}

// Header is the part of a record that is known without decoding its ops.
type Header struct {
	Stream     geo.Stream
	Seq        geo.Seq
	Prev       geo.Hash
	CommitTime geo.Timestamp
	// Incarnation is that of the stream's range when the record was numbered.
	Incarnation geo.Incarnation
}

// ParseHeader decodes the header of an encoded record that is trusted: part of a
// group or outbox whose own checksum was right.
func ParseHeader(b []byte) (Header, error) { return new(Names).ParseHeader(b) }

// ParseHeader is the function of that name, for one of many records.
func (n *Names) ParseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) < recHeader+crcLen {
		return h, ErrMalformed
	}
	if err := wrongVersion(b[0]); err != nil {
		return h, err
	}
	rd := reader{b: b[recHeader:]}
	h.Stream.Lane = geo.Lane(b[recLane])
	h.Seq = geo.Seq(binary.LittleEndian.Uint64(b[recSeq:]))
	h.Prev = geo.Hash(binary.LittleEndian.Uint64(b[recPrev:]))
	h.CommitTime = geo.Timestamp(binary.LittleEndian.Uint64(b[recTime:]))
	h.Stream.Epoch.Number = geo.EpochNumber(binary.LittleEndian.Uint64(b[recEpoch:]))
	h.Stream.Range = geo.RangeID(binary.LittleEndian.Uint32(b[recRange:]))
	h.Incarnation = geo.Incarnation(binary.LittleEndian.Uint64(b[recIncarn:]))
	h.Stream.Epoch.Location, h.Stream.Account = n.read(&rd)
	if rd.failed {
		return h, ErrMalformed
	}
	return h, nil
}
