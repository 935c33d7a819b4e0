package pair

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/replication/payload"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// remoteEnd is an End over calls.
type remoteEnd struct {
	c link.Caller
	// bodies is a pool of the bodies of calls with chunks.
	bodies *extent.Buffers
}

// NewRemote returns an End of the paired location, where Serve answers.
func NewRemote(c link.Caller) End {
	return &remoteEnd{c: c, bodies: extent.NewBuffers(payload.ChunkBytes+chunkHeader, payload.ChunksMax)}
}

// chunkHeader bounds the bytes of a call with a chunk, without the chunk.
const chunkHeader = 64

// call makes one call and parses its answer.
func call[T any, A interface {
	*T
	proto.Message
}](ctx context.Context, c link.Caller, method string, q proto.Message) (A, error) {
	body, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	return answer[T, A](ctx, c, method, body)
}

func answer[T any, A interface {
	*T
	proto.Message
}](ctx context.Context, c link.Caller, method string, body []byte) (A, error) {
	b, err := c.Call(ctx, method, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	a := A(new(T))
	if err := proto.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", method, ErrMalformed, err)
	}
	return a, nil
}

// Records implements End. A record that is too long for one answer comes in parts.
func (r *remoteEnd) Records(ctx context.Context, s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
	q := &wire.RecordsRequest{Stream: wireStream(s), From: uint64(from), BytesMax: uint32(bytesMax)}
	a, err := call[wire.RecordsAnswer](ctx, r.c, methodRecords, q)
	if err != nil || a.GetLength() == 0 {
		return a.GetRecords(), err
	}
	length := a.GetLength()
	if length > change.RecordBytesMax {
		return nil, fmt.Errorf("%s: %w: record of %d bytes", methodRecords, ErrMalformed, length)
	}
	whole := make([]byte, 0, length)
	for {
		if a.GetLength() != length || len(a.GetPart()) == 0 || len(whole)+len(a.GetPart()) > int(length) {
			return nil, fmt.Errorf("%s: %w: parts that do not fit", methodRecords, ErrMalformed)
		}
		whole = append(whole, a.GetPart()...)
		if len(whole) == int(length) {
			return [][]byte{whole}, nil
		}
		q.Offset = uint32(len(whole))
		if a, err = call[wire.RecordsAnswer](ctx, r.c, methodRecords, q); err != nil {
			return nil, err
		}
	}
}

// Closed implements End. Each page is the promise of a separate moment; together they promise the
// earliest T. A head of a later moment only requires more records than necessary.
func (r *remoteEnd) Closed(ctx context.Context, id geo.RangeID) (*change.Closed, error) {
	var whole *change.Closed
	q := &wire.ClosedRequest{Range: uint32(id)}
	for {
		a, err := call[wire.ClosedAnswer](ctx, r.c, methodClosed, q)
		if err != nil {
			return nil, err
		}
		page, err := change.ParseClosed(a.GetClosed())
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w: %w", methodClosed, ErrMalformed, err)
		case page.Range != id || !page.Full || a.GetMore() && len(page.Heads) == 0:
			return nil, fmt.Errorf("%s: %w: closed record of range %d in place of the full one of %d", methodClosed, ErrMalformed, page.Range, id)
		case whole == nil:
			whole = &page
		case page.Incarnation != whole.Incarnation: // The range was recovered with loss in between (R16).
			return nil, fmt.Errorf("%s: %w: pages of different incarnations", methodClosed, ErrMalformed)
		default:
			whole.T = min(whole.T, page.T)
			whole.Heads = append(whole.Heads, page.Heads...)
		}
		if !a.GetMore() {
			return whole, nil
		}
		if q.After, err = r.nextPage(q.After, &page); err != nil {
			return nil, err
		}
	}
}

// nextPage returns the last stream of a page, which must be above that of the previous page:
// otherwise the same page would be requested for ever.
func (r *remoteEnd) nextPage(before *wire.Stream, page *change.Closed) (*wire.Stream, error) {
	last := page.Stream(page.Heads[len(page.Heads)-1])
	if before != nil {
		if at, err := parseStream(before); err != nil || last.Compare(at) <= 0 {
			return nil, fmt.Errorf("%s: %w: pages out of order", methodClosed, ErrMalformed)
		}
	}
	return wireStream(last), nil
}

// cursorsPerCall bounds an Acknowledge: a cursor has some 60 bytes, 600 in the worst case.
const cursorsPerCall = 4096

// Acknowledge implements End. A page of the mismatches ends where the answer is full; the next call
// begins behind it.
func (r *remoteEnd) Acknowledge(ctx context.Context, id geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error) {
	cursors := slices.Clone(a.Cursors)
	slices.SortFunc(cursors, func(a, b ship.StreamCursor) int { return a.Stream.Compare(b.Stream) })
	var mismatches []ship.Mismatch
	for after := a.After; ; {
		n := min(len(cursors), cursorsPerCall)
		upTo, last := a.UpTo, n == len(cursors)
		if !last {
			upTo = cursors[n-1].Stream
		}
		q := &wire.AcknowledgeRequest{Range: uint32(id), Cursors: wireCursors(cursors[:n])}
		if a.Full {
			q.Full, q.After, q.UpTo = true, wireBound(after), wireBound(upTo)
		}
		answer, err := call[wire.AcknowledgeAnswer](ctx, r.c, methodAcknowledge, q)
		if err != nil {
			return nil, err
		}
		some, err := parseMismatches(id, after, answer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", methodAcknowledge, err)
		}
		mismatches = append(mismatches, some...)
		switch {
		case answer.GetMore():
			after = some[len(some)-1].Stream
		case last:
			return mismatches, nil
		default:
			after = upTo
		}
		cursors = cursors[sort.Search(len(cursors), func(i int) bool { return cursors[i].Stream.Compare(after) > 0 }):]
	}
}

// ReadChunk implements End.
func (r *remoteEnd) ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error {
	a, err := call[wire.ReadChunkAnswer](ctx, r.c, methodReadChunk, &wire.ReadChunkRequest{Ref: wireRef(ref)})
	if err != nil {
		return err
	}
	if copy(p, a.GetData()) != len(p) || len(a.GetData()) != len(p) {
		return fmt.Errorf("%s: %w: %d bytes of a chunk of %d", methodReadChunk, ErrMalformed, len(a.GetData()), len(p))
	}
	return nil
}

// PutChunk implements End.
func (r *remoteEnd) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	if len(data) > chunkMax {
		return fmt.Errorf("chunk %s of %d bytes does not fit a call", ref.ID, len(data))
	}
	buf, err := r.bodies.Get(ctx, len(data)+chunkHeader)
	if err != nil {
		return err
	}
	defer r.bodies.Put(buf)
	body, err := proto.MarshalOptions{}.MarshalAppend(buf[:0], &wire.PutChunkRequest{Ref: wireRef(ref), Data: data})
	if err != nil {
		return err
	}
	_, err = answer[wire.PutChunkAnswer](ctx, r.c, methodPutChunk, body)
	return err
}
