package change

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
)

// GroupID identifies a group that a leader evaluated: its term and a count within
// the term from 1. The zero value is "no group yet".
type GroupID struct{ Term, Number uint64 }

// PartKind says what a part of a group is. Durable: never renumber.
type PartKind byte

// The kinds of parts.
const (
	PartChange         PartKind = 1  // a record of an account whose primary is here
	PartReceived       PartKind = 2  // a record of the other location, applied with its cursor
	PartReceivedCursor PartKind = 3  // the same, advancing the cursor only (R14)
	PartClosed         PartKind = 4  // closed time of this range
	PartReceivedClosed PartKind = 5  // closed record of a source range of the other location
	PartGate           PartKind = 6  // gate of an account (R7)
	PartGeneration     PartKind = 7  // generation closed (R8)
	PartTrim           PartKind = 8  // outbox of a stream deleted up to a number
	PartStop           PartKind = 9  // stream stopped, or free to go on (R16)
	PartWipe           PartKind = 14 // rows of clients' keys in a span deleted
	PartImage          PartKind = 15 // how far the image of an account's rows is (R17)
	PartReceivedBase   PartKind = 16 // a record of the other location that the cursor is set to, as a fork is settled (R16)
	PartCompared       PartKind = 17 // gates compared with the catalog, under an incarnation (R7)
	PartGateAgreed     PartKind = 18 // gate of an account with Gate.Agreed
	PartLevels         PartKind = 19 // feature levels of the location, in its catalog
)

// Kinds that are reserved, so that formats need not change when they are built. No leader writes
// them yet, and apply refuses them. 10 is free.
const (
	PartFreeze  PartKind = 11 // gates of an account frozen for an epoch, with the fork record (R20)
	PartWaiting PartKind = 12 // gate of a former primary that waits (R22)
	PartSplit   PartKind = 13 // the range is split; numbered on every stream of it
)

// Group is one Raft entry: the changes of all commands that a leader evaluated
// together. It takes effect whole or not at all (R1).
type Group struct {
	ID   GroupID
	Pred GroupID
	// Answered is the last index of the log that the leader had answered to clients, in its term,
	// when it evaluated the group; zero for none. Entries above the greatest one found in a log may
	// never have been answered.
	Answered uint64
	// parts are the encoded parts behind the header.
	parts []byte
	count uint32
}

const (
	groupCount    = 4
	groupAnswered = 40
	groupHeader   = 48
	partHeader    = 5
)

// Builder appends parts to a group. The zero value is ready.
type Builder struct {
	buf    []byte
	count  uint32
	chunks bool
	// needs is the feature level that the parts need.
	needs feature.Level
}

// Needs is the feature level that has to be active for what was appended so far.
func (b *Builder) Needs() feature.Level { return b.needs }

// Reserve makes room for n bytes of parts in an empty builder, so that it need not be copied as it grows.
func (b *Builder) Reserve(n int) { b.buf = make([]byte, 0, groupHeader+n+crcLen) }

// Len is the number of bytes encoded so far, checksum not counted.
func (b *Builder) Len() int { return len(b.buf) }

// Count is the number of parts so far.
func (b *Builder) Count() int { return int(b.count) }

// Mark is a place to roll back to.
type Mark struct {
	len    int
	count  uint32
	chunks bool
	needs  feature.Level
}

// Mark returns the present place.
func (b *Builder) Mark() Mark { return Mark{len(b.buf), b.count, b.chunks, b.needs} }

// Rollback drops all parts since m.
func (b *Builder) Rollback(m Mark) {
	b.buf, b.count, b.chunks, b.needs = b.buf[:m.len], m.count, m.chunks, m.needs
}

func (b *Builder) begin(kind PartKind) int {
	if len(b.buf) == 0 {
		b.buf = append(b.buf, make([]byte, groupHeader)...)
	}
	b.buf = append(b.buf, byte(kind), 0, 0, 0, 0)
	b.count++
	b.needs = max(b.needs, kind.Level())
	return len(b.buf)
}

func (b *Builder) end(start int) {
	binary.LittleEndian.PutUint32(b.buf[start-4:], uint32(len(b.buf)-start))
}

// Record appends a change record and returns its encoded bytes, valid until the
// next call.
func (b *Builder) Record(r *Record) ([]byte, error) {
	m := b.Mark()
	start := b.begin(PartChange)
	buf, err := AppendRecord(b.buf, r)
	if err != nil {
		b.Rollback(m)
		return nil, err
	}
	b.buf = buf
	b.end(start)
	b.chunks = b.chunks || len(r.Chunks) > 0
	return b.buf[start:], nil
}

// Received appends a record of the other location; whole is false where it only
// advances the cursor (R14).
func (b *Builder) Received(encoded []byte, r *Record, whole bool) {
	if !whole {
		b.Raw(PartReceivedCursor, encoded)
		return
	}
	b.Raw(PartReceived, encoded)
	b.chunks = b.chunks || len(r.Chunks) > 0
}

// Base appends a record of the other location that the cursor of its stream is set to.
func (b *Builder) Base(encoded []byte) { b.Raw(PartReceivedBase, encoded) }

// Raw appends a part whose bytes are already encoded.
func (b *Builder) Raw(kind PartKind, body []byte) {
	start := b.begin(kind)
	b.buf = append(b.buf, body...)
	b.end(start)
}

// Closed appends the range's own closed time.
func (b *Builder) Closed(t geo.Timestamp) {
	start := b.begin(PartClosed)
	b.buf = binary.LittleEndian.AppendUint64(b.buf, uint64(t))
	b.end(start)
}

// Compared appends that the gates of the range were compared with the catalog, under an incarnation.
func (b *Builder) Compared(as geo.Incarnation) {
	start := b.begin(PartCompared)
	b.buf = AppendCompared(b.buf, as)
	b.end(start)
}

// AppendCompared appends the body of a PartCompared, which is the stored value too.
func AppendCompared(dst []byte, as geo.Incarnation) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(as))
}

// ParseCompared decodes what AppendCompared appends.
func ParseCompared(b []byte) (geo.Incarnation, error) {
	if len(b) != 8 {
		return 0, ErrMalformed
	}
	return geo.Incarnation(binary.LittleEndian.Uint64(b)), nil
}

// ReceivedClosed appends a closed record of the other location.
func (b *Builder) ReceivedClosed(c *Closed) {
	start := b.begin(PartReceivedClosed)
	b.buf = AppendClosed(b.buf, c)
	b.end(start)
	if c.Wall != 0 {
		b.needs = max(b.needs, feature.Walls)
	}
}

// Gate appends a gate change.
func (b *Builder) Gate(a geo.Account, g Gate) {
	kind := PartGate
	if g.Agreed != 0 {
		kind = PartGateAgreed // A program that does not know it waits: it would let writes through that need R21.
	}
	start := b.begin(kind)
	b.buf = appendShort(b.buf, string(a))
	b.buf = AppendGate(b.buf, g)
	b.end(start)
}

// Stop appends that a stream is stopped, or, with the reason NotStopped, that it may go on.
func (b *Builder) Stop(s geo.Stream, why Stop) {
	start := b.begin(PartStop)
	b.buf = AppendStopPart(b.buf, s, why)
	b.end(start)
}

// Generation appends the closing of a generation, given as its state key.
func (b *Builder) Generation(key []byte) { b.Raw(PartGeneration, key) }

// Finish returns the encoded entry; answered is Group.Answered. The builder is empty afterwards
// and no longer owns the bytes.
func (b *Builder) Finish(id, pred GroupID, answered uint64) []byte {
	if len(b.buf) == 0 {
		b.buf = append(b.buf, make([]byte, groupHeader)...)
	}
	buf := b.buf
	buf[0] = formatVersion
	if b.chunks {
		buf[1] = flagChunks
	}
	binary.LittleEndian.PutUint32(buf[groupCount:], b.count)
	binary.LittleEndian.PutUint64(buf[8:], id.Term)
	binary.LittleEndian.PutUint64(buf[16:], id.Number)
	binary.LittleEndian.PutUint64(buf[24:], pred.Term)
	binary.LittleEndian.PutUint64(buf[32:], pred.Number)
	binary.LittleEndian.PutUint64(buf[groupAnswered:], answered)
	buf = binary.LittleEndian.AppendUint32(buf, crc.Of(buf))
	*b = Builder{}
	return buf
}

// ParseGroup decodes the header of an entry and checks its CRC32C. Parts alias b.
func ParseGroup(b []byte) (Group, error) {
	var g Group
	if len(b) < groupHeader+crcLen {
		return g, ErrMalformed
	}
	if !checksumFits(b) {
		return g, ErrChecksum
	}
	if err := wrongVersion(b[0]); err != nil {
		return g, err
	}
	if b[1]&^flagChunks != 0 || b[2] != 0 || b[3] != 0 {
		return g, ErrMalformed
	}
	return cutGroup(b), nil
}

// checksumFits reports whether b ends with the CRC32C of everything before, as records, groups and frames
// of every version do.
func checksumFits(b []byte) bool {
	body := len(b) - crcLen
	return body >= 0 && crc.Of(b[:body]) == binary.LittleEndian.Uint32(b[body:])
}

// cutGroup decodes the header of a group of this version, which is long enough.
func cutGroup(b []byte) (g Group) {
	g.count = binary.LittleEndian.Uint32(b[groupCount:])
	g.ID = GroupID{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
	g.Pred = GroupID{binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])}
	g.Answered = binary.LittleEndian.Uint64(b[groupAnswered:])
	g.parts = b[groupHeader : len(b)-crcLen]
	return g
}

// Count is the number of parts, as far as there is room for them.
func (g *Group) Count() int { return min(int(g.count), len(g.parts)/partHeader) }

// Parts calls f for every part in order and stops at the first error.
func (g *Group) Parts(f func(kind PartKind, body []byte) error) error {
	rest := g.parts
	for range g.count {
		if len(rest) < partHeader {
			return ErrMalformed
		}
		n := int(binary.LittleEndian.Uint32(rest[1:]))
		if n < 0 || n > len(rest)-partHeader {
			return ErrMalformed
		}
		if err := f(PartKind(rest[0]), rest[partHeader:partHeader+n:partHeader+n]); err != nil {
			return err
		}
		rest = rest[partHeader+n:]
	}
	if len(rest) != 0 {
		return ErrMalformed
	}
	return nil
}

// ParseClosedTime decodes a PartClosed.
func ParseClosedTime(b []byte) (geo.Timestamp, error) {
	if len(b) != 8 {
		return 0, ErrMalformed
	}
	return geo.Timestamp(binary.LittleEndian.Uint64(b)), nil
}

// flagChunks in a group's header: some record in it names chunks.
const flagChunks = 1

// NamesChunks reports, from the header alone, whether a group's records name
// payload chunks.
func NamesChunks(group []byte) bool { return len(group) > groupHeader && group[1]&flagChunks != 0 }

// GroupChunks returns the chunks that the records of a group name.
func GroupChunks(group []byte) ([]extent.Ref, error) {
	g, err := ParseGroup(group)
	if err != nil {
		return nil, err
	}
	var refs []extent.Ref
	err = g.Parts(func(kind PartKind, body []byte) error {
		if kind != PartChange && kind != PartReceived {
			return nil
		}
		r, err := ParseRecord(body)
		refs = append(refs, r.Chunks...)
		return err
	})
	return refs, err
}
