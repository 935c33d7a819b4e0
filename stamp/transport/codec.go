package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
)

// The bounds of what goes over the wire.
const (
	// frameBytes is about how much of messages goes into one frame.
	frameBytes = 256 << 10
	// messageBytesMax bounds one Raft message, encoded. An entry has up to 16 MiB; a
	// message of more goes nowhere, which a range does not survive, so this is generous.
	messageBytesMax = 32 << 20
	// frameBytesMax is what a peer takes: frameBytes, or one message alone.
	frameBytesMax = messageBytesMax + frameBytes + 64
	// partBytes is the data of one part of a chunk at most.
	partBytes = 256 << 10
)

// ErrFrame means that a peer sent what is not of this protocol.
var ErrFrame = errors.New("malformed frame")

// codec encodes batch and part by hand, into and out of pooled buffers: generated code
// would copy bulk once more each way, and allocate it. All else is left to gRPC's own
// codec; the bytes are those of wire/stamp.proto either way.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *batch:
		return v.marshal()
	case *part:
		return v.marshal()
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *batch:
		buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buf.Free()
		return v.unmarshal(buf.ReadOnlyData())
	case *part:
		return v.unmarshal(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// pooled returns the buffer of a message of exactly size bytes, which fill appends.
func pooled(size int, fill func(b []byte) ([]byte, error)) (mem.BufferSlice, error) {
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	b, err := fill((*buf)[:0])
	if err == nil && len(b) != size {
		err = fmt.Errorf("encoded %d bytes, expected %d", len(b), size)
	}
	if err != nil {
		pool.Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// Field numbers of wire/stamp.proto.
const (
	batchEnvelopes  = 1
	envelopeRange   = 1
	envelopeMessage = 2
	partRef         = 1
	partData        = 2
	refID           = 1
	refLength       = 2
	refCRC          = 3
)

// batch is wire.Batch.
type batch struct {
	envelopes []node.Envelope
	// sizes of the messages while marshal runs.
	sizes []int
}

func envelopeSize(id geo.RangeID, message int) int {
	return protowire.SizeTag(envelopeRange) + protowire.SizeVarint(uint64(id)) +
		protowire.SizeTag(envelopeMessage) + protowire.SizeBytes(message)
}

func (m *batch) marshal() (mem.BufferSlice, error) {
	total := 0
	m.sizes = m.sizes[:0]
	for _, e := range m.envelopes {
		size := proto.Size(e.Message)
		m.sizes = append(m.sizes, size)
		total += protowire.SizeTag(batchEnvelopes) + protowire.SizeBytes(envelopeSize(e.Range, size))
	}
	return pooled(total, func(b []byte) ([]byte, error) {
		var err error
		for i, e := range m.envelopes {
			b = protowire.AppendTag(b, batchEnvelopes, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(envelopeSize(e.Range, m.sizes[i])))
			b = protowire.AppendTag(b, envelopeRange, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(e.Range))
			b = protowire.AppendTag(b, envelopeMessage, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(m.sizes[i]))
			// The sizes inside were computed by proto.Size above, and nobody changes a
			// message that was sent.
			if b, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(b, e.Message); err != nil {
				return nil, err
			}
		}
		return b, nil
	})
}

// unmarshal appends the envelopes in b. Their messages do not share memory with it:
// Raft keeps entries longer than the frame they came in.
func (m *batch) unmarshal(b []byte) error {
	for len(b) > 0 {
		num, raw, n, err := field(b)
		if err != nil {
			return err
		}
		b = b[n:]
		if num != batchEnvelopes {
			continue
		}
		e, err := parseEnvelope(raw)
		if err != nil {
			return err
		}
		m.envelopes = append(m.envelopes, e)
	}
	return nil
}

func parseEnvelope(b []byte) (node.Envelope, error) {
	var e node.Envelope
	for len(b) > 0 {
		num, raw, n, err := field(b)
		if err != nil {
			return e, err
		}
		b = b[n:]
		switch num {
		case envelopeRange:
			v, n := protowire.ConsumeVarint(raw)
			if n != len(raw) || v > 1<<32-1 {
				return e, fmt.Errorf("%w: range", ErrFrame)
			}
			e.Range = geo.RangeID(v)
		case envelopeMessage:
			e.Message = &pb.Message{}
			if err := proto.Unmarshal(raw, e.Message); err != nil {
				return e, fmt.Errorf("%w: %w", ErrFrame, err)
			}
		}
	}
	if e.Message == nil {
		return e, fmt.Errorf("%w: envelope without a message", ErrFrame)
	}
	if e.Report = reportFromWire(e.Message); e.Report != nil {
		e.Message = nil
	}
	return e, nil
}

// field cuts the first field of b: its number, the bytes of its value (of a
// length-delimited one the contents), and how many bytes it takes in all.
func field(b []byte) (protowire.Number, []byte, int, error) {
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0, nil, 0, fmt.Errorf("%w: %w", ErrFrame, protowire.ParseError(tag))
	}
	value := protowire.ConsumeFieldValue(num, typ, b[tag:])
	if value < 0 {
		return 0, nil, 0, fmt.Errorf("%w: %w", ErrFrame, protowire.ParseError(value))
	}
	raw := b[tag : tag+value]
	if typ == protowire.BytesType {
		raw, _ = protowire.ConsumeBytes(raw)
	}
	return num, raw, tag + value, nil
}

// part is wire.ChunkPart.
type part struct {
	// ref is set in the first part of PutChunk.
	ref extent.Ref
	// data is what is sent; it is copied before SendMsg returns.
	data []byte
	// sink takes the data that comes, from got on; more than fits is an error.
	sink []byte
	got  int
}

func appendRef(b []byte, ref extent.Ref) []byte {
	b = protowire.AppendTag(b, refID, protowire.BytesType)
	b = protowire.AppendBytes(b, ref.ID[:])
	b = protowire.AppendTag(b, refLength, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(ref.Length))
	b = protowire.AppendTag(b, refCRC, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, ref.CRC)
}

func (p *part) marshal() (mem.BufferSlice, error) {
	var ref []byte
	size := 0
	if p.ref != (extent.Ref{}) {
		ref = appendRef(make([]byte, 0, 64), p.ref)
		size += protowire.SizeTag(partRef) + protowire.SizeBytes(len(ref))
	}
	if len(p.data) > 0 {
		size += protowire.SizeTag(partData) + protowire.SizeBytes(len(p.data))
	}
	return pooled(size, func(b []byte) ([]byte, error) {
		if len(ref) > 0 {
			b = protowire.AppendTag(b, partRef, protowire.BytesType)
			b = protowire.AppendBytes(b, ref)
		}
		if len(p.data) > 0 {
			b = protowire.AppendTag(b, partData, protowire.BytesType)
			b = protowire.AppendBytes(b, p.data)
		}
		return b, nil
	})
}

// unmarshal copies data from the buffers it arrived in straight into sink.
func (p *part) unmarshal(data mem.BufferSlice) error {
	r := data.Reader()
	defer func() { _ = r.Close() }()
	for r.Remaining() > 0 {
		tag, err := binary.ReadUvarint(r)
		num, typ := protowire.DecodeTag(tag)
		if err != nil || typ != protowire.BytesType {
			return fmt.Errorf("%w: part of a chunk", ErrFrame)
		}
		n, err := binary.ReadUvarint(r)
		if err != nil || n > uint64(r.Remaining()) {
			return fmt.Errorf("%w: part of a chunk", ErrFrame)
		}
		switch num {
		case partData:
			if n > uint64(len(p.sink)-p.got) {
				return fmt.Errorf("%w: more data than the chunk is long", ErrFrame)
			}
			if _, err := io.ReadFull(r, p.sink[p.got:p.got+int(n)]); err != nil {
				return err
			}
			p.got += int(n)
		case partRef:
			if n > 64 {
				return fmt.Errorf("%w: ref of a chunk has %d bytes", ErrFrame, n)
			}
			var b [64]byte
			if _, err := io.ReadFull(r, b[:n]); err != nil {
				return err
			}
			if p.ref, err = parseRef(b[:n]); err != nil {
				return err
			}
		default:
			if _, err := r.Discard(int(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func parseRef(b []byte) (extent.Ref, error) {
	var ref extent.Ref
	for len(b) > 0 {
		num, raw, n, err := field(b)
		if err != nil {
			return ref, err
		}
		b = b[n:]
		switch num {
		case refID:
			if len(raw) != len(ref.ID) {
				return ref, fmt.Errorf("%w: chunk id has %d bytes", ErrFrame, len(raw))
			}
			copy(ref.ID[:], raw)
		case refLength:
			v, m := protowire.ConsumeVarint(raw)
			if m != len(raw) {
				return ref, fmt.Errorf("%w: length of a chunk", ErrFrame)
			}
			ref.Length = uint32(min(v, extent.ChunkBytesMax+1))
		case refCRC:
			v, m := protowire.ConsumeFixed32(raw)
			if m != len(raw) {
				return ref, fmt.Errorf("%w: crc of a chunk", ErrFrame)
			}
			ref.CRC = v
		}
	}
	if ref.Length == 0 || ref.Length > extent.ChunkBytesMax {
		return ref, fmt.Errorf("%w: chunk %s: length must be 1 to %d", ErrFrame, ref.ID, extent.ChunkBytesMax)
	}
	return ref, nil
}
