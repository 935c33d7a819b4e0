package change

import (
	"encoding/binary"

	"antipode/geo"
)

// StreamHead is a stream of the closed record's range with its last record.
type StreamHead struct {
	Account geo.Account
	Epoch   geo.Epoch
	Lane    geo.Lane
	Seq     geo.Seq
	// Hash is that of the record. A receiver at the same number with another hash holds another
	// stream (R16).
	Hash geo.Hash
}

// Head is the last record of the stream.
func (h StreamHead) Head() geo.Head { return geo.Head{Seq: h.Seq, Hash: h.Hash} }

// Closed is the promise of a source range, committed in its log: no commit at or
// before T will follow. Heads are the last numbers, as of T, of every stream that
// changed in (T0, T], held-back streams included; of every stream when Full.
//
// A receiver whose committed closed time for the range is at least T0 may take it;
// another asks for the full set (R12).
type Closed struct {
	Origin geo.Location
	Range  geo.RangeID
	// Incarnation is that of Range.
	Incarnation geo.Incarnation
	Full        bool
	T0, T       geo.Timestamp
	// Wall is set where T is ahead of the clock by which it was given (R6), zero elsewhere. It is what that clock showed at
	// a moment before which no write was acknowledged with a commit time above T: so a receiver that has all up to T has
	// all that was acknowledged before Wall (R13). From feature.Walls on.
	Wall geo.Timestamp
	// Span is what Range held at T, and Descriptor the version of it. Every full closed record has
	// them, so that a receiver can check that ranges tile a service (R13). No other has; Descriptor
	// is then zero.
	Span       geo.Span
	Descriptor geo.DescriptorVersion
	Heads      []StreamHead
}

// Stream names the stream of a head of this closed record.
func (c *Closed) Stream(h StreamHead) geo.Stream {
	return geo.Stream{Account: h.Account, Epoch: h.Epoch, Range: c.Range, Lane: h.Lane}
}

// AppendClosed appends the encoded closed record. It carries no checksum:
// frame and group carry one over it.
func AppendClosed(dst []byte, c *Closed) []byte {
	flags := byte(0)
	if c.Full {
		flags |= closedFull
	}
	if c.Descriptor != 0 {
		flags |= closedSpan
	}
	dst = append(dst, walledVersion(c.Wall != 0), flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(c.Range))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Incarnation))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.T0))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.T))
	if c.Wall != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Wall))
	}
	dst = appendShort(dst, string(c.Origin))
	if c.Descriptor != 0 {
		dst = binary.AppendUvarint(dst, uint64(c.Descriptor))
		for _, key := range [...]string{c.Span.Start, c.Span.End} {
			dst = binary.AppendUvarint(dst, uint64(len(key)))
			dst = append(dst, key...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Heads)))
	for _, h := range c.Heads {
		dst = appendShort(dst, string(h.Account))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Epoch.Number))
		dst = appendShort(dst, string(h.Epoch.Location))
		dst = append(dst, byte(h.Lane))
		dst = binary.AppendUvarint(dst, uint64(h.Seq))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Hash))
	}
	return dst
}

// versionWalled is the version of a closed record with Wall, and of a cursor with one (feature.Walls). Without one both have
// formatVersion, and the bytes that they always had.
const versionWalled = 2

func walledVersion(walled bool) byte {
	if walled {
		return versionWalled
	}
	return formatVersion
}

// isLaterClosed is isLater for a closed record.
func isLaterClosed(b []byte) bool { return len(b) > 0 && b[0] > versionWalled }

// Shown is a closed time, or a sync time that follows from it, as Last Sync Time shows it: wall, where there is one (R13).
func Shown(t, wall geo.Timestamp) geo.Timestamp {
	if wall != 0 {
		return wall
	}
	return t
}

// Flags of a closed record.
const (
	closedFull = 1
	closedSpan = 2
)

// ParseClosed decodes a closed record that fills b. One of a later version is ErrVersion.
func ParseClosed(b []byte) (Closed, error) {
	if isLaterClosed(b) {
		return Closed{}, ErrVersion
	}
	rd := reader{b: b}
	c := readClosed(&rd)
	if rd.failed || len(rd.b) != 0 {
		return Closed{}, ErrMalformed
	}
	return c, nil
}

func readClosed(rd *reader) Closed {
	var c Closed
	version, flags := rd.byte(), rd.byte()
	if version != formatVersion && version != versionWalled || flags&^(closedFull|closedSpan) != 0 {
		rd.failed = true
		return c
	}
	c.Full = flags&closedFull != 0
	c.Range = geo.RangeID(rd.uint32())
	c.Incarnation = geo.Incarnation(rd.uint64())
	c.T0 = geo.Timestamp(rd.uint64())
	c.T = geo.Timestamp(rd.uint64())
	if version == versionWalled {
		c.Wall = geo.Timestamp(rd.uint64())
		rd.failed = rd.failed || c.Wall == 0
	}
	c.Origin = geo.Location(rd.short())
	if flags&closedSpan != 0 {
		c.Descriptor = geo.DescriptorVersion(rd.uvarint())
		c.Span = geo.Span{Start: string(rd.bytes()), End: string(rd.bytes())}
		rd.failed = rd.failed || c.Descriptor == 0
	}
	count := rd.count(20)
	if count > 0 {
		c.Heads = make([]StreamHead, 0, count)
	}
	for range count {
		var h StreamHead
		h.Account = geo.Account(rd.short())
		h.Epoch.Number = geo.EpochNumber(rd.uint64())
		h.Epoch.Location = geo.Location(rd.short())
		h.Lane = geo.Lane(rd.byte())
		h.Seq = geo.Seq(rd.uvarint())
		h.Hash = geo.Hash(rd.uint64())
		if h.Lane >= geo.LaneCount {
			rd.failed = true
		}
		c.Heads = append(c.Heads, h)
	}
	return c
}
