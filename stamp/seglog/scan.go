package seglog

import (
	"encoding/binary"
	"fmt"

	"antipode/stamp/feature"
)

// scanned is what one file holds.
type scanned struct {
	segment *segment
	data    []byte
	header  segmentHeader
	// whole: the header is intact.
	whole bool
	// frames are those that are intact, from the first on, and end is behind them.
	frames []frameHeader
	end    int64
	// synced is the greatest of the marks of this use of the file, those above end
	// included; 0 for none.
	synced int64
}

// begun reports whether the segment has what begin writes.
func (sc *scanned) begun() bool { return len(sc.frames) > 0 }

func readHeader(s *segment) (h segmentHeader, ok bool, err error) {
	b := make([]byte, headerBytes)
	if s.size < headerBytes {
		return h, false, nil
	}
	if err := readFull(s.file, b, 0); err != nil {
		return h, false, fmt.Errorf("read %s: %w", s.path, err)
	}
	return decodeSegmentHeader(b, s.number)
}

// scan reads a whole segment. What is damaged is no error here.
func scan(s *segment) (*scanned, error) {
	sc := &scanned{segment: s, data: make([]byte, s.size)}
	if err := readFull(s.file, sc.data, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	var err error
	if sc.header, sc.whole, err = decodeSegmentHeader(sc.data, s.number); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	at := int64(pageBytes)
	if sc.whole {
		var sd seed
		for at < s.size {
			f, ok := parseFrame(&sd, sc.data[at:], s.number, sc.header.inc, at)
			if !ok {
				if err := later(&sd, sc.data[at:], s.number, sc.header.inc, at); err != nil {
					return nil, fmt.Errorf("%s at %d: %w", s.path, at, err)
				}
			}
			if !ok || (f.kind == frameState) != (at == pageBytes) {
				break
			}
			sc.frames = append(sc.frames, f)
			sc.synced = max(sc.synced, f.synced)
			at += f.size()
		}
		sc.end = at
	}
	// Behind a frame that is not intact there may be another that shows that it was.
	for ; at < s.size; at += pageBytes {
		f, ok := decodeFrameHeader(sc.data[at:], s.number, at)
		if ok && (!sc.whole || f.inc == sc.header.inc) {
			sc.synced = max(sc.synced, f.synced)
		}
	}
	return sc, nil
}

// later returns ErrVersion for a frame that parseFrame refused if it, or a record in it, is of a kind that this version
// does not know, and intact: a later version wrote it here. It is no torn tail and no damage.
func later(sd *seed, b []byte, number uint64, inc incarnation, at int64) error {
	if len(b) < headerBytes || binary.LittleEndian.Uint32(b) != magicFrame || !headerSealed(b) {
		return nil
	}
	h := frameHeader{
		kind: frameKind(binary.LittleEndian.Uint32(b[atFrameKind:])), payload: binary.LittleEndian.Uint32(b[atPayload:]),
		number: binary.LittleEndian.Uint64(b[atFrameNumber:]), offset: int64(binary.LittleEndian.Uint64(b[atOffset:])),
	}
	copy(h.inc[:], b[atIncarnation:])
	if h.number != number || h.offset != at || h.inc != inc {
		return nil // Of a former use of the file.
	}
	if h.kind > frameBatch {
		return fmt.Errorf("%w: %w", ErrVersion, feature.Later("a frame's kind", uint64(h.kind), uint64(frameBatch)))
	}
	end := min(headerBytes+int64(h.payload), int64(len(b)))
	for pos := int64(headerBytes); pos < end; {
		n := recordLength(b[pos:end])
		if n == 0 || sd.crc(inc, at+pos, b[pos:pos+int64(n)]) != binary.LittleEndian.Uint32(b[pos:]) {
			return nil
		}
		if kind := recordKind(b[pos+atKind]); kind > recordReset {
			return fmt.Errorf("%w: %w", ErrVersion, feature.Later("a record's kind", uint64(kind), uint64(recordReset)))
		}
		pos += int64(n)
	}
	return nil
}

// payload is the records of a frame.
func (sc *scanned) payload(f frameHeader) []byte {
	return sc.data[f.offset+headerBytes:][:f.payload]
}

// proven returns the frames that end at or below the offset; ok is false unless they
// reach it.
func (sc *scanned) proven(end int64) (frames []frameHeader, ok bool) {
	at := int64(0)
	for i, f := range sc.frames {
		if f.offset+f.size() > end {
			break
		}
		frames, at = sc.frames[:i+1], f.offset+f.size()
	}
	return frames, at == end
}
