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
	"antipode/stamp/change"
)

// Bounds of answers, below the 4 MiB of a call.
const (
	// recordsMax bounds the records of an answer in bytes, but for the first one.
	recordsMax = 1 << 20
	// partMax is how much of one large record goes into an answer.
	partMax = 2 << 20
	// headsPerPage bounds a page of a closed record: a head has some 60 bytes, 600 in the
	// worst case.
	headsPerPage = 4096
)

// Serve answers a Remote of the other location for e. While l is cut no call is answered; the
// caller waits for the delay.
func Serve(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodRecords, func(ctx context.Context, q *wire.RecordsRequest) (*wire.RecordsAnswer, error) {
		return records(ctx, e, q)
	})
	handle(h, l, methodClosed, func(ctx context.Context, q *wire.ClosedRequest) (*wire.ClosedAnswer, error) {
		return closed(ctx, e, q)
	})
	handle(h, l, methodAcknowledge, func(ctx context.Context, q *wire.AcknowledgeRequest) (*wire.AcknowledgeAnswer, error) {
		a, err := parseAcknowledgement(q)
		if err != nil {
			return nil, err
		}
		mismatches, err := e.Acknowledge(ctx, geo.RangeID(q.GetRange()), a)
		if err != nil {
			return nil, err
		}
		return wireMismatches(mismatches), nil
	})
	serveRest(h, l, e)
	serveReceived(h, l, e)
	serveVerify(h, l, e)
	serveClock(h, l, e)
	serveMissing(h, l, e)
	handle(h, l, methodReadChunk, func(ctx context.Context, q *wire.ReadChunkRequest) (*wire.ReadChunkAnswer, error) {
		ref, err := parseRef(q.GetRef())
		if err != nil {
			return nil, err
		}
		data := make([]byte, ref.Length)
		if err := e.ReadChunk(ctx, ref, data); err != nil {
			return nil, err
		}
		return &wire.ReadChunkAnswer{Data: data}, nil
	})
	handle(h, l, methodPutChunk, func(ctx context.Context, q *wire.PutChunkRequest) (*wire.PutChunkAnswer, error) {
		ref, err := parseRef(q.GetRef())
		if err != nil {
			return nil, err
		}
		if len(q.GetData()) != int(ref.Length) {
			return nil, fmt.Errorf("%w: %d bytes for a chunk of %d", ErrMalformed, len(q.GetData()), ref.Length)
		}
		return &wire.PutChunkAnswer{}, e.PutChunk(ctx, ref, q.GetData())
	})
}

// handle answers one method.
func handle[T any, Q interface {
	*T
	proto.Message
}, A proto.Message](h link.Handlers, l *link.Link, method string, f func(ctx context.Context, q Q) (A, error)) {
	h.Handle(method, func(ctx context.Context, body []byte) ([]byte, error) {
		if cut, _ := l.State(); cut {
			return nil, link.ErrCut
		}
		q := Q(new(T))
		if err := proto.Unmarshal(body, q); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		a, err := f(ctx, q)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(a)
	})
}

// records answers with whole records, or with a part of one that is too long.
func records(ctx context.Context, e End, q *wire.RecordsRequest) (*wire.RecordsAnswer, error) {
	s, err := parseStream(q.GetStream())
	if err != nil {
		return nil, err
	}
	found, err := e.Records(ctx, s, geo.Seq(q.GetFrom()), int(min(q.GetBytesMax(), recordsMax)))
	if err != nil || len(found) == 0 {
		return &wire.RecordsAnswer{}, err
	}
	first, offset := found[0], int(q.GetOffset())
	if len(first) <= partMax && offset == 0 {
		return &wire.RecordsAnswer{Records: found}, nil
	}
	if offset >= len(first) {
		return nil, fmt.Errorf("%w: offset %d in a record of %d bytes", ErrMalformed, offset, len(first))
	}
	part := first[offset:min(offset+partMax, len(first))]
	return &wire.RecordsAnswer{Part: part, Length: uint32(len(first))}, nil
}

// closed answers with the page of heads that follows the caller's last stream.
func closed(ctx context.Context, e End, q *wire.ClosedRequest) (*wire.ClosedAnswer, error) {
	c, err := e.Closed(ctx, geo.RangeID(q.GetRange()))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(c.Heads, func(a, b change.StreamHead) int { return c.Stream(a).Compare(c.Stream(b)) })
	if q.GetAfter() != nil {
		after, err := parseStream(q.GetAfter())
		if err != nil {
			return nil, err
		}
		n := sort.Search(len(c.Heads), func(i int) bool { return c.Stream(c.Heads[i]).Compare(after) > 0 })
		c.Heads = c.Heads[n:]
	}
	more := len(c.Heads) > headsPerPage
	c.Heads = c.Heads[:min(len(c.Heads), headsPerPage)]
	return &wire.ClosedAnswer{Closed: change.AppendClosed(nil, c), More: more}, nil
}
