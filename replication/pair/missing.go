package pair

import (
	"context"
	"fmt"

	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/replication/payload"
	"antipode/stamp/extent"
)

// MissingChunks implements End.
func (e *stampEnd) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	return e.stamp.MissingChunks(ctx, refs)
}

// MissingChunks implements End.
func (e *linkedEnd) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) ([]bool, error) { return e.e.MissingChunks(ctx, refs) })
}

// MissingChunks implements End.
func (r *remoteEnd) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	q := &wire.MissingChunksRequest{Refs: make([]*wire.ChunkRef, len(refs))}
	for i, ref := range refs {
		q.Refs[i] = wireRef(ref)
	}
	a, err := call[wire.MissingChunksAnswer](ctx, r.c, methodMissingChunks, q)
	if err != nil {
		return nil, err
	}
	if len(a.GetMissing()) != len(refs) {
		return nil, fmt.Errorf("%s: %w: answer about %d chunks in place of %d", methodMissingChunks, ErrMalformed, len(a.GetMissing()), len(refs))
	}
	return a.GetMissing(), nil
}

func serveMissing(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodMissingChunks, func(ctx context.Context, q *wire.MissingChunksRequest) (*wire.MissingChunksAnswer, error) {
		if len(q.GetRefs()) > payload.AskedMax {
			return nil, fmt.Errorf("%w: question about %d chunks", ErrMalformed, len(q.GetRefs()))
		}
		refs := make([]extent.Ref, len(q.GetRefs()))
		for i, w := range q.GetRefs() {
			var err error
			if refs[i], err = parseRef(w); err != nil {
				return nil, err
			}
		}
		missing, err := e.MissingChunks(ctx, refs)
		return &wire.MissingChunksAnswer{Missing: missing}, err
	})
}
