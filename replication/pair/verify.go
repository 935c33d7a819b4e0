package pair

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/stamp/ranges"
)

// Verify implements End.
func (e *stampEnd) Verify(ctx context.Context, id geo.RangeID, question []byte) ([]byte, error) {
	answer, err := e.stamp.Verify(ctx, id, question)
	if errors.Is(err, ranges.ErrNotLeader) {
		return nil, e.noLeader(id)
	}
	return answer, err
}

// Verify implements End.
func (e *linkedEnd) Verify(ctx context.Context, id geo.RangeID, question []byte) ([]byte, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) ([]byte, error) { return e.e.Verify(ctx, id, question) })
}

// Verify implements End.
func (r *remoteEnd) Verify(ctx context.Context, id geo.RangeID, question []byte) ([]byte, error) {
	a, err := call[wire.VerifyAnswer](ctx, r.c, methodVerify, &wire.VerifyRequest{Range: uint32(id), Question: question})
	return a.GetAnswer(), err
}

func serveVerify(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodVerify, func(ctx context.Context, q *wire.VerifyRequest) (*wire.VerifyAnswer, error) {
		answer, err := e.Verify(ctx, geo.RangeID(q.GetRange()), q.GetQuestion())
		return &wire.VerifyAnswer{Answer: answer}, err
	})
}
