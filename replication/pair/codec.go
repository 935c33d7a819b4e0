package pair

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/replication/pair/wire"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// ErrMalformed is returned for bytes of the other location that do not follow this protocol.
var ErrMalformed = errors.New("malformed call over the link")

// Methods of Serve. They travel: never rename one.
const (
	methodRecords       = "link.Records"
	methodClosed        = "link.Closed"
	methodAcknowledge   = "link.Acknowledge"
	methodRest          = "link.Rest"
	methodReceived      = "link.Received"
	methodReadChunk     = "link.ReadChunk"
	methodPutChunk      = "link.PutChunk"
	methodMissingChunks = "link.MissingChunks"
	methodVerify        = "link.Verify"
	methodClock         = "link.Clock"
)

func wireStream(s geo.Stream) *wire.Stream {
	return &wire.Stream{
		Account: string(s.Account), Epoch: uint64(s.Epoch.Number), Location: string(s.Epoch.Location), Range: uint32(s.Range), Lane: uint32(s.Lane),
	}
}

// parseStream refuses streams that the keys of a state store cannot hold.
func parseStream(w *wire.Stream) (geo.Stream, error) {
	if len(w.GetAccount()) == 0 || len(w.GetAccount()) > 255 || len(w.GetLocation()) > 255 || w.GetLane() >= geo.LaneCount {
		return geo.Stream{}, fmt.Errorf("%w: stream", ErrMalformed)
	}
	return geo.Stream{
		Account: geo.Account(w.GetAccount()), Epoch: geo.Epoch{Number: geo.EpochNumber(w.GetEpoch()), Location: geo.Location(w.GetLocation())},
		Range: geo.RangeID(w.GetRange()), Lane: geo.Lane(w.GetLane()),
	}, nil
}

func wireCursors(cursors []ship.StreamCursor) []*wire.Cursor {
	out := make([]*wire.Cursor, len(cursors))
	for i, c := range cursors {
		out[i] = &wire.Cursor{Stream: wireStream(c.Stream), Seq: uint64(c.Head.Seq), Hash: uint64(c.Head.Hash), Below: uint64(c.Below), Stop: uint32(c.Stop)}
	}
	return out
}

// parseCursors takes cursors of streams of one range.
func parseCursors(id geo.RangeID, list []*wire.Cursor) ([]ship.StreamCursor, error) {
	out := make([]ship.StreamCursor, 0, len(list))
	for _, w := range list {
		s, err := parseStream(w.GetStream())
		if err != nil {
			return nil, err
		}
		if s.Range != id {
			return nil, fmt.Errorf("%w: cursor of range %d among those of %d", ErrMalformed, s.Range, id)
		}
		if w.GetStop() > 255 {
			return nil, fmt.Errorf("%w: cursor with stop %d", ErrMalformed, w.GetStop())
		}
		h := geo.Head{Seq: geo.Seq(w.GetSeq()), Hash: geo.Hash(w.GetHash())}
		out = append(out, ship.StreamCursor{Stream: s, Head: h, Below: geo.Seq(w.GetBelow()), Stop: change.StopReason(w.GetStop())})
	}
	return out, nil
}

// wireBound is the end of a span of streams: nil for none.
func wireBound(s geo.Stream) *wire.Stream {
	if s == (geo.Stream{}) {
		return nil
	}
	return wireStream(s)
}

func parseBound(w *wire.Stream) (geo.Stream, error) {
	if w == nil {
		return geo.Stream{}, nil
	}
	return parseStream(w)
}

func parseAcknowledgement(q *wire.AcknowledgeRequest) (a ship.Acknowledgement, err error) {
	a.Full = q.GetFull()
	if a.Cursors, err = parseCursors(geo.RangeID(q.GetRange()), q.GetCursors()); err != nil {
		return a, err
	}
	if a.After, err = parseBound(q.GetAfter()); err != nil {
		return a, err
	}
	a.UpTo, err = parseBound(q.GetUpTo())
	return a, err
}

// mismatchesPerAnswer bounds the mismatches of an answer: one has some 70 bytes, 600 in the worst
// case.
const mismatchesPerAnswer = 4096

func wireMismatches(mismatches []ship.Mismatch) *wire.AcknowledgeAnswer {
	n := min(len(mismatches), mismatchesPerAnswer)
	out := &wire.AcknowledgeAnswer{More: n < len(mismatches)}
	for _, v := range mismatches[:n] {
		out.Mismatches = append(out.Mismatches, &wire.Mismatch{
			Stream: wireStream(v.Stream), Reason: uint32(v.Reason),
			Seq: uint64(v.Here.Seq), Hash: uint64(v.Here.Hash), Stopped: v.Stopped,
		})
	}
	return out
}

// parseMismatches takes an answer for streams of one range above after.
func parseMismatches(id geo.RangeID, after geo.Stream, a *wire.AcknowledgeAnswer) ([]ship.Mismatch, error) {
	out := make([]ship.Mismatch, 0, len(a.GetMismatches()))
	for _, w := range a.GetMismatches() {
		s, err := parseStream(w.GetStream())
		if err != nil {
			return nil, err
		}
		if s.Range != id || w.GetReason() == 0 || w.GetReason() > 255 || s.Compare(after) <= 0 {
			return nil, fmt.Errorf("%w: mismatch of reason %d on a stream of range %d", ErrMalformed, w.GetReason(), s.Range)
		}
		after = s
		out = append(out, ship.Mismatch{
			Stream: s, Reason: change.StopReason(w.GetReason()),
			Here: geo.Head{Seq: geo.Seq(w.GetSeq()), Hash: geo.Hash(w.GetHash())}, Stopped: w.GetStopped(),
		})
	}
	if a.GetMore() && len(out) == 0 {
		return nil, fmt.Errorf("%w: a page without mismatches", ErrMalformed)
	}
	return out, nil
}

func wireRef(r extent.Ref) *wire.ChunkRef {
	return &wire.ChunkRef{Id: r.ID[:], Length: r.Length, Crc: r.CRC}
}

// chunkMax bounds a chunk that goes over the link, in bytes, so that it fits a call.
const chunkMax = 3 << 20

func parseRef(w *wire.ChunkRef) (extent.Ref, error) {
	var r extent.Ref
	if len(w.GetId()) != len(r.ID) || w.GetLength() == 0 || w.GetLength() > chunkMax {
		return r, fmt.Errorf("%w: chunk of %d bytes, its id of %d", ErrMalformed, w.GetLength(), len(w.GetId()))
	}
	copy(r.ID[:], w.GetId())
	r.Length, r.CRC = w.GetLength(), w.GetCrc()
	return r, nil
}
