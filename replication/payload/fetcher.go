package payload

import (
	"context"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/stamp/extent"
)

// fetchesOpen bounds the chunks that are fetched or wait for their turns.
const fetchesOpen = 1024

// Fetcher fetches chunks of the far stamp: the part of receive.Source that is payload.
type Fetcher struct {
	l     *link.Link
	far   Far
	calls *link.Calls
	turns *turns
}

// NewFetcher returns a Fetcher of the payload of far, over l.
func NewFetcher(l *link.Link, far Far, c clock.Clock) *Fetcher {
	return &Fetcher{l: l, far: far, calls: link.NewCalls(l, fetchesOpen, fetchesOpen), turns: newTurns(c)}
}

// Chunk implements receive.Source.
func (f *Fetcher) Chunk(ref extent.Ref, done func([]byte, error)) {
	var data []byte
	k := small
	if ref.Length >= ChunkBytes {
		k = large // Of how much payload it is a chunk is not known here.
	}
	f.calls.Start(func(ctx context.Context) error {
		return f.turns.over(ctx, k, int(ref.Length), func() error {
			data = make([]byte, ref.Length)
			return f.l.Do(ctx, func(ctx context.Context) error { return f.far.ReadChunk(ctx, ref, data) })
		})
	}, func(err error) {
		if err != nil {
			data = nil
		}
		done(data, err)
	})
}
