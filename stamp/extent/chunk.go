package extent

import (
	"encoding/hex"
	"errors"
	"fmt"

	"antipode/internal/crc"
	"antipode/internal/plantedbugs"
)

// ChunkBytesMax is the greatest payload of one chunk, in bytes.
const ChunkBytesMax = 4 << 20

var (
	// ErrNotFound means that no chunk of that id is held: never put, deleted, or
	// torn by a crash before a Sync covered it.
	ErrNotFound = errors.New("chunk not found")
	// ErrCorrupt means that the copy held here is damaged. The chunk must be fetched
	// from a peer and put again, which repairs it.
	ErrCorrupt = errors.New("chunk is corrupt")
	// ErrMismatch means that a Ref does not fit: data of another length or CRC, or
	// another chunk held under the same id. The caller has mixed something up.
	ErrMismatch = errors.New("chunk does not match its ref")
	// ErrFailed means that a write or an fsync failed and the store is out of service
	// for writing until it is opened again. It wraps the first failure.
	ErrFailed = errors.New("extent store is out of service")
	// ErrFormat means that an extent file is of a format this version cannot read.
	ErrFormat = errors.New("unknown extent format")
	// ErrReadOnly refuses a change to a store opened by OpenReadOnly.
	ErrReadOnly = errors.New("extent store is read-only")
	// ErrClosed refuses any call after Close.
	ErrClosed = errors.New("extent store is closed")
)

// ChunkID names a chunk. The caller draws it; one id never names two payloads.
type ChunkID [16]byte

// String returns the id as 32 lower case hex digits.
func (id ChunkID) String() string { return hex.EncodeToString(id[:]) }

// ParseChunkID is the inverse of String.
func ParseChunkID(text string) (ChunkID, error) {
	var id ChunkID
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return ChunkID{}, fmt.Errorf("chunk id %q: want %d hex digits", text, 2*len(id))
	}
	copy(id[:], raw)
	return id, nil
}

// Ref is what a change names: the chunk and enough to know its bytes again.
type Ref struct {
	ID ChunkID
	// Length is the payload's size in bytes, 1 to ChunkBytesMax.
	Length uint32
	// CRC is the CRC32C of the whole payload.
	CRC uint32
}

// NewRef returns the Ref of data under id.
func NewRef(id ChunkID, data []byte) Ref {
	return Ref{ID: id, Length: uint32(len(data)), CRC: crc.Of(data)}
}

// String returns id, length and CRC for errors and logs.
func (r Ref) String() string {
	return fmt.Sprintf("%s (%d bytes, crc %08x)", r.ID, r.Length, r.CRC)
}

// check refuses a Ref that no chunk can have.
func (r Ref) check() error {
	if r.Length == 0 || r.Length > ChunkBytesMax {
		return fmt.Errorf("%w: %s: length must be 1 to %d", ErrMismatch, r, ChunkBytesMax)
	}
	return nil
}

// Chunk is a payload that was checked against its Ref, with what a store writes beside
// it: so that a chunk for three nodes is summed once and not three times. The payload
// is the caller's, and must not change while the Chunk is in use.
type Chunk struct {
	ref  Ref
	data []byte
	// sums are the CRCs of the slices, sliceBytes each, as they stand in the file.
	sums       []uint32
	sliceBytes uint32
}

// NewChunk sums data, in slices of 64 KiB. ErrMismatch means that data does not fit ref.
func NewChunk(ref Ref, data []byte) (Chunk, error) { return sumChunk(ref, data, sliceBytesMax) }

func sumChunk(ref Ref, data []byte, sliceBytes int) (Chunk, error) {
	if err := ref.check(); err != nil {
		return Chunk{}, err
	}
	if len(data) != int(ref.Length) {
		return Chunk{}, fmt.Errorf("%w: %s: data has %d bytes", ErrMismatch, ref, len(data))
	}
	c := Chunk{ref: ref, data: data, sliceBytes: uint32(sliceBytes)}
	c.sums = make([]uint32, 0, sliceCount(ref.Length, c.sliceBytes))
	sum := summer{id: ref.ID}
	for rest := data; len(rest) > 0; {
		n := min(sliceBytes, len(rest))
		c.sums = append(c.sums, sum.add(rest[:n]))
		rest = rest[n:]
	}
	if sum.total != ref.CRC && !plantedbugs.Planted(plantedbugs.PutUnverified) {
		return Chunk{}, fmt.Errorf("%w: %s: data has crc %08x", ErrMismatch, ref, sum.total)
	}
	return c, nil
}
