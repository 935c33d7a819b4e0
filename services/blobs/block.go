package blobs

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
)

// Limits of blocks (protocol/blob.md 10.2, 23).
const (
	// BlockIDMax is the longest block id, decoded, in bytes.
	BlockIDMax = 64
	// BlockBytesMax is the longest block of any version, in bytes.
	BlockBytesMax = 4000 << 20
	// CommittedMax is how many blocks a committed list may name.
	CommittedMax = 50_000
	// StagedMax is how many uncommitted blocks a blob may have.
	StagedMax = 100_000
	// stagedFor is how long uncommitted blocks live after the last Put Block.
	stagedFor = 7 * 24 * time.Hour
)

// Layout of the rows of blocks; see docs/format/blob.md.
const (
	blockVersion = 1
	// stagingVersion is that of a staging row beside which a copy is under way.
	stagingVersion = 2
	// segmentEntries is how many entries a row of a list has, but the last.
	segmentEntries = 256
	stagingLen     = 22
	copyingLen     = 24
	blockHeaderLen = 6
	entryHeaderLen = 12
)

// Staging describes the uncommitted blocks of a blob. They belong to a session, which
// begins with the first Put Block and ends when they are committed or discarded.
// Rows of a session that has ended are named by the committed list, or are dead:
// nothing will ever read them. So ending a session is one small change, whatever the
// number of blocks, and dead rows are dropped behind it (see Dead).
type Staging struct {
	// Session is the commit time of its first Put Block; zero if there are no uncommitted blocks.
	Session geo.Timestamp
	// Last is the commit time of its newest Put Block: it changes with every block.
	Last geo.Timestamp
	// Count of its blocks.
	Count uint32
	// IDLength is the length of their ids, in bytes.
	IDLength byte
	// Copying is a copy onto the blob whose blocks come by more than one change. It ends with the row.
	Copying Copying
}

// Copying is a copy under way: its blocks are rows of a session that nothing reads before the copy is committed.
type Copying struct {
	ID [16]byte
	// Session is the commit time of the first StageCopy; zero for no copy.
	Session geo.Timestamp
}

// Block is the payload of one block: inline, or in chunks.
type Block struct {
	// Length in bytes, above zero.
	Length uint32
	Inline []byte
	Chunks []extent.Ref
}

// entry is one block as a committed list names it.
type entry struct {
	session geo.Timestamp
	length  uint32
	id      string
}

func blockRow(session geo.Timestamp, id string) []byte {
	b := append(make([]byte, 0, 9+BlockIDMax), rowBlock)
	return append(binary.BigEndian.AppendUint64(b, uint64(session)), id...)
}

func listRow(list geo.Timestamp, number int) []byte {
	b := binary.BigEndian.AppendUint64([]byte{rowList}, uint64(list))
	return binary.BigEndian.AppendUint32(b, uint32(number))
}

func appendStaging(dst []byte, s *Staging) []byte {
	version := byte(blockVersion)
	if s.Copying.Session != 0 {
		version = stagingVersion
	}
	dst = append(dst, version, s.IDLength)
	dst = binary.LittleEndian.AppendUint32(dst, s.Count)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Session))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Last))
	if version == blockVersion {
		return dst
	}
	return binary.LittleEndian.AppendUint64(append(dst, s.Copying.ID[:]...), uint64(s.Copying.Session))
}

// level is the feature level that a program has to know to read the row.
func (s *Staging) level() feature.Level {
	if s.Copying.Session != 0 {
		return feature.Blobs
	}
	return feature.Base
}

func parseStaging(v []byte) (s Staging, err error) {
	if len(v) > 0 && v[0] > stagingVersion {
		return s, fmt.Errorf("%w: %w", ErrMalformed, feature.Later("staging of a blob", uint64(v[0]), stagingVersion))
	}
	if len(v) < stagingLen || v[0] < blockVersion || len(v) != stagingLen+int(v[0]-blockVersion)*copyingLen || v[1] > BlockIDMax {
		return s, fmt.Errorf("%w: staging", ErrMalformed)
	}
	s.IDLength = v[1]
	s.Count = binary.LittleEndian.Uint32(v[2:])
	s.Session = geo.Timestamp(binary.LittleEndian.Uint64(v[6:]))
	s.Last = geo.Timestamp(binary.LittleEndian.Uint64(v[14:]))
	if v[0] == stagingVersion {
		copy(s.Copying.ID[:], v[stagingLen:])
		s.Copying.Session = geo.Timestamp(binary.LittleEndian.Uint64(v[stagingLen+len(s.Copying.ID):]))
	}
	empty := s == Staging{Copying: s.Copying}
	if (s.IDLength == 0 || s.Session == 0) && !empty || empty && s.Copying.Session == 0 || v[0] == stagingVersion && s.Copying.Session == 0 {
		return s, fmt.Errorf("%w: staging", ErrMalformed)
	}
	return s, nil
}

// value is the stored form of b. It refuses what parseBlock would.
func (b *Block) value() ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	dst := make([]byte, 0, blockHeaderLen+8+len(b.Inline)+len(b.Chunks)*refLen)
	flags := byte(0)
	if len(b.Chunks) > 0 {
		flags = flagChunks
	}
	dst = binary.LittleEndian.AppendUint32(append(dst, blockVersion, flags), b.Length)
	if len(b.Chunks) > 0 {
		return appendRefs(dst, b.Chunks), nil
	}
	return append(dst, b.Inline...), nil
}

func (b *Block) check() error {
	if b.Length == 0 {
		return fmt.Errorf("%w: block of no bytes", ErrMalformed)
	}
	return checkPayload(uint64(b.Length), b.Inline, b.Chunks)
}

// parseBlock decodes a block row. Inline aliases v.
func parseBlock(v []byte) (b Block, err error) {
	if len(v) < blockHeaderLen || v[0] != blockVersion || v[1]&^flagChunks != 0 {
		return b, fmt.Errorf("%w: block", ErrMalformed)
	}
	b.Length = binary.LittleEndian.Uint32(v[2:])
	rd := reader{b: v[blockHeaderLen:]}
	if v[1] == 0 {
		b.Inline = rd.take(len(rd.b))
	} else {
		b.Chunks = rd.refs()
	}
	if rd.failed || len(rd.b) > 0 {
		return Block{}, fmt.Errorf("%w: block", ErrMalformed)
	}
	return b, b.check()
}

// appendSegment appends one row of a list: entries whose ids are of one length.
func appendSegment(dst []byte, entries []entry) []byte {
	dst = append(dst, blockVersion, byte(len(entries[0].id)))
	for i := range entries {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(entries[i].session))
		dst = binary.LittleEndian.AppendUint32(dst, entries[i].length)
		dst = append(dst, entries[i].id...)
	}
	return dst
}

func parseSegment(v []byte) ([]entry, error) {
	if len(v) < 2 || v[0] != blockVersion || v[1] == 0 || v[1] > BlockIDMax {
		return nil, fmt.Errorf("%w: list", ErrMalformed)
	}
	rd := reader{b: v[2:]}
	size := entryHeaderLen + int(v[1])
	if len(rd.b) == 0 || len(rd.b)%size != 0 || len(rd.b)/size > segmentEntries {
		return nil, fmt.Errorf("%w: list", ErrMalformed)
	}
	out := make([]entry, len(rd.b)/size)
	for i := range out {
		out[i] = entry{geo.Timestamp(rd.uint64()), rd.uint32(), string(rd.take(int(v[1])))}
		if out[i].length == 0 {
			return nil, fmt.Errorf("%w: block of no bytes in a list", ErrMalformed)
		}
	}
	return out, nil
}

// cutSegments writes entries as the rows of a list, and returns the payload bytes that each
// stands for.
func cutSegments(entries []entry) (rows [][]byte, lengths []uint64) {
	for len(entries) > 0 {
		part := entries[:min(len(entries), segmentEntries)]
		entries = entries[len(part):]
		length := uint64(0)
		for i := range part {
			length += uint64(part[i].length)
		}
		rows = append(rows, appendSegment(nil, part))
		lengths = append(lengths, length)
	}
	return rows, lengths
}

// GetStaging reads the staging row of a blob. there reports whether the blob has one; live also that it has uncommitted
// blocks, which have not expired at now (protocol/blob.md 10.2). If not, s has a copy that is under way alone.
func GetStaging(get kv.Getter, n Name, now geo.Timestamp) (s Staging, live, there bool, err error) {
	v, ok, err := get.Get(n.keyOf([]byte{rowStaging}))
	if err != nil || !ok {
		return Staging{}, false, false, err
	}
	if s, err = parseStaging(v); err != nil {
		return s, false, true, fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err)
	}
	if !s.live(now) {
		return Staging{Copying: s.Copying}, false, true, nil
	}
	return s, true, true, nil
}

// live reports whether there are uncommitted blocks that have not expired.
func (s *Staging) live(now geo.Timestamp) bool {
	return s.Session != 0 && now.Time().Sub(s.Last.Time()) <= stagedFor
}

// getBlock reads a block; ok is false if there is no such block.
func getBlock(get kv.Getter, n Name, session geo.Timestamp, id string) (b Block, ok bool, err error) {
	v, ok, err := get.Get(n.keyOf(blockRow(session, id)))
	if err != nil || !ok {
		return Block{}, false, err
	}
	b, err = parseBlock(v)
	return b, true, err
}

// getSegment reads a row of a list; ErrReplaced if the row is gone.
func getSegment(get kv.Getter, n Name, list geo.Timestamp, number int) ([]entry, error) {
	v, ok, err := get.Get(n.keyOf(listRow(list, number)))
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, ErrReplaced
	}
	return parseSegment(v)
}

// A block's length fits the four bytes it has.
const _ = uint32(math.MaxUint32 - BlockBytesMax)
