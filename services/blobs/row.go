package blobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
)

// ErrMalformed is returned for bytes that no encoder of this package wrote.
var ErrMalformed = errors.New("blobs: malformed row")

// Layout of a row; see docs/format/blob.md.
const (
	rowVersion  = 1
	rowTagged   = 2 // the version with tagged fields, of a blob that the first one cannot hold
	typeBlock   = 1
	typeAppend  = 2
	flagMD5     = 1 << 0
	flagChunks  = 1 << 1
	flagBlocks  = 1 << 2
	flagAnyMD5  = 1 << 3 // an MD5 that is not of 16 bytes
	md5Len      = 16
	offType     = 1
	offFlags    = 2
	offTier     = 3
	offModified = 4
	offCreated  = 12
	offLength   = 20
	headerLen   = 28
	refLen      = 24
)

// appendRow appends the stored form of b. It refuses what parseRow would.
func appendRow(dst []byte, b *Blob) ([]byte, error) {
	if err := b.check(); err != nil {
		return dst, err
	}
	var flags byte
	switch len(b.MD5) {
	case 0:
	case md5Len:
		flags |= flagMD5
	default:
		flags |= flagAnyMD5
	}
	switch {
	case len(b.Chunks) > 0:
		flags |= flagChunks
	case b.List != nil:
		flags |= flagBlocks
	}
	fields := b.fields()
	kind, version := byte(typeBlock), byte(rowVersion)
	if b.Appended != nil {
		kind = typeAppend
	}
	if b.tagged(len(fields)) {
		version = rowTagged
	}
	dst = append(dst, version, kind, flags, byte(b.Tier))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Modified))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Created))
	dst = binary.LittleEndian.AppendUint64(dst, b.Length)
	if flags&flagAnyMD5 != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(b.MD5)))
	}
	dst = append(dst, b.MD5...)
	for _, s := range b.Properties.list() {
		dst = appendText(dst, *s)
	}
	dst = appendPairs(dst, b.Metadata)
	if version == rowTagged {
		dst = binary.AppendUvarint(dst, uint64(len(fields)))
		for _, f := range fields {
			dst = appendText(append(dst, f.tag), string(f.value))
		}
	}
	switch {
	case b.Appended != nil:
		return appendAppended(dst, b.Appended), nil
	case len(b.Chunks) > 0:
		return appendRefs(dst, b.Chunks), nil
	case b.List != nil:
		return appendList(dst, b.List), nil
	}
	return append(dst, b.Inline...), nil
}

func appendRefs(dst []byte, refs []extent.Ref) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(refs)))
	for _, c := range refs {
		dst = append(dst, c.ID[:]...)
		dst = binary.LittleEndian.AppendUint32(dst, c.Length)
		dst = binary.LittleEndian.AppendUint32(dst, c.CRC)
	}
	return dst
}

func appendList(dst []byte, l *BlockList) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.ID))
	dst = binary.AppendUvarint(dst, uint64(len(l.Segments)))
	for _, n := range l.Segments {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// check tests the rules that the layout alone does not enforce.
func (b *Blob) check() error {
	if err := b.checkFields(); err != nil {
		return err
	}
	if b.Appended != nil {
		if len(b.Inline) > 0 || len(b.Chunks) > 0 || b.List != nil || b.Length < uint64(b.Appended.Blocks) || b.Length > 0 && b.Appended.Blocks == 0 {
			return fmt.Errorf("%w: %d bytes in %d appended blocks, or other payload beside them", ErrMalformed, b.Length, b.Appended.Blocks)
		}
		return nil
	}
	if b.List == nil {
		return checkPayload(b.Length, b.Inline, b.Chunks)
	}
	if len(b.Inline) > 0 || len(b.Chunks) > 0 || len(b.List.Segments) == 0 {
		return fmt.Errorf("%w: a block list beside other payload, or an empty one", ErrMalformed)
	}
	length := uint64(0)
	for _, n := range b.List.Segments {
		if n == 0 || length+n < length {
			return fmt.Errorf("%w: part of %d bytes behind %d", ErrMalformed, n, length)
		}
		length += n
	}
	return sameLength(b.Length, length)
}

// checkPayload tests the rules of payload inline or in chunks.
func checkPayload(said uint64, inline []byte, chunks []extent.Ref) error {
	length := uint64(len(inline))
	if len(chunks) > 0 && length > 0 {
		return fmt.Errorf("%w: both inline and in chunks", ErrMalformed)
	}
	for _, c := range chunks {
		if c.Length == 0 || c.Length > extent.ChunkBytesMax {
			return fmt.Errorf("%w: chunk of %d bytes", ErrMalformed, c.Length)
		}
		length += uint64(c.Length)
	}
	return sameLength(said, length)
}

func sameLength(said, found uint64) error {
	if said != found {
		return fmt.Errorf("%w: length %d, payload of %d", ErrMalformed, said, found)
	}
	return nil
}

// list returns the properties in the order of the row.
func (p *Properties) list() [5]*string {
	return [5]*string{&p.ContentType, &p.ContentEncoding, &p.ContentLanguage, &p.ContentDisposition, &p.CacheControl}
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// parseRow decodes a stored row. Inline aliases v.
func parseRow(v []byte) (Blob, error) {
	b, rd, err := parseHead(v)
	if err != nil {
		return Blob{}, err
	}
	switch v[offFlags] & (flagChunks | flagBlocks) {
	case 0:
		if b.Appended == nil {
			b.Inline = rd.take(len(rd.b))
		}
	case flagChunks:
		b.Chunks = rd.refs()
	case flagBlocks:
		b.List = rd.list()
	default:
		rd.failed = true
	}
	if rd.failed || len(rd.b) > 0 {
		return Blob{}, ErrMalformed
	}
	return b, b.check()
}

// parseHead decodes a row up to its payload and leaves rd there: a listing reads no further.
func parseHead(v []byte) (b Blob, rd reader, err error) {
	if len(v) > 0 && v[0] > rowTagged {
		return b, rd, fmt.Errorf("%w: %w", ErrMalformed, feature.Later("a blob", uint64(v[0]), rowTagged))
	}
	if len(v) < headerLen || v[0] < rowVersion || v[offType] < typeBlock || v[offType] > typeAppend ||
		v[offFlags]&^(flagMD5|flagChunks|flagBlocks|flagAnyMD5) != 0 {
		return b, rd, ErrMalformed
	}
	b.Tier = Tier(v[offTier])
	b.Modified = geo.Timestamp(binary.LittleEndian.Uint64(v[offModified:]))
	b.Created = geo.Timestamp(binary.LittleEndian.Uint64(v[offCreated:]))
	b.Length = binary.LittleEndian.Uint64(v[offLength:])
	rd.b = v[headerLen:]
	b.MD5 = rd.md5(v[offFlags])
	for _, s := range b.Properties.list() {
		*s = rd.text()
	}
	b.Metadata = rd.pairs()
	fields := 0
	if v[0] == rowTagged {
		if fields, err = rd.fields(&b); err != nil {
			return Blob{}, rd, err
		}
	}
	if v[offType] == typeAppend {
		b.Appended = rd.appended()
	}
	if rd.failed || (v[0] == rowTagged) != b.tagged(fields) {
		return Blob{}, rd, ErrMalformed // A blob has one form.
	}
	return b, rd, nil
}

// reader takes fields from the front of b. After a failure everything it returns is
// empty.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) || n < 0 {
		r.failed, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// uvarint reads a number in its shortest form only, so that a row has one form.
func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of items of which each takes size bytes at least.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.failed, r.b = true, nil
		return 0
	}
	return int(n)
}

// md5 reads the MD5 that the flags of a row announce, into new memory.
func (r *reader) md5(flags byte) []byte {
	n := 0
	switch flags & (flagMD5 | flagAnyMD5) {
	case 0:
		return nil
	case flagMD5:
		n = md5Len
	case flagAnyMD5:
		n = r.count(1)
		r.failed = r.failed || n == 0 || n == md5Len // A row has one form.
	default:
		r.failed = true
	}
	return bytes.Clone(r.take(n))
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if r.failed {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) uint64() uint64 {
	b := r.take(8)
	if r.failed {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) list() *BlockList {
	l := &BlockList{ID: geo.Timestamp(r.uint64())}
	l.Segments = make([]uint64, r.count(1))
	for i := range l.Segments {
		l.Segments[i] = r.uvarint()
	}
	return l
}

// pairs reads names with their values, nil for none.
func (r *reader) pairs() (out []Pair) {
	if n := r.count(2); n > 0 {
		out = make([]Pair, n)
		for i := range out {
			out[i].Name = r.text()
			out[i].Value = r.text()
		}
	}
	return out
}

func (r *reader) byte() byte {
	b := r.take(1)
	if r.failed {
		return 0
	}
	return b[0]
}

func (r *reader) text() string { return string(r.take(r.count(1))) }

func (r *reader) refs() []extent.Ref {
	n := r.count(refLen)
	if n == 0 {
		r.failed = true // A row without chunks lacks the flag.
		return nil
	}
	refs := make([]extent.Ref, n)
	for i := range refs {
		b := r.take(refLen)
		copy(refs[i].ID[:], b)
		refs[i].Length = binary.LittleEndian.Uint32(b[16:])
		refs[i].CRC = binary.LittleEndian.Uint32(b[20:])
	}
	return refs
}
