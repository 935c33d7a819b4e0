package link

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/replication/link/wire"
	"antipode/replication/ship"
	"antipode/stamp/extent"
)

// ErrMalformed is returned for bytes of the other location that do not follow this protocol.
var ErrMalformed = errors.New("malformed call over the link")

// Methods of Serve. They travel: never rename one.
const (
	methodRecords     = "link.Records"
	methodClosed      = "link.Closed"
	methodAcknowledge = "link.Acknowledge"
	methodReadChunk   = "link.ReadChunk"
	methodPutChunk    = "link.PutChunk"
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

func wireStreams(streams []geo.Stream) []*wire.Stream {
	out := make([]*wire.Stream, len(streams))
	for i, s := range streams {
		out[i] = wireStream(s)
	}
	return out
}

func parseStreams(list []*wire.Stream) ([]geo.Stream, error) {
	var out []geo.Stream
	for _, w := range list {
		s, err := parseStream(w)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func wireCursors(cursors []ship.StreamCursor) []*wire.Cursor {
	out := make([]*wire.Cursor, len(cursors))
	for i, c := range cursors {
		out[i] = &wire.Cursor{Stream: wireStream(c.Stream), Seq: uint64(c.Head.Seq), Hash: uint64(c.Head.Hash)}
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
		out = append(out, ship.StreamCursor{Stream: s, Head: geo.Head{Seq: geo.Seq(w.GetSeq()), Hash: geo.Hash(w.GetHash())}})
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
