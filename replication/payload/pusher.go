package payload

import (
	"context"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/replication/ship"
	"antipode/stamp/extent"
)

// Bounds of payload on its way.
const (
	ChunkBytes  = 1 << 20 // of one chunk; a longer one counts as many
	ChunksMax   = 8       // chunks at once, of all pushes
	pushPerCall = 4       // chunks at once, of one push
	pushesOpen  = 256     // pushes at once; their chunks wait for their turns
)

// Far is the far stamp. Every call may be repeated, with the effect of one.
type Far interface {
	// ReadChunk fills p, of the chunk's length, with the chunk.
	ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error
	// PutChunk makes a chunk durable on the replicas. It does not keep data.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
}

// ChunkReader reads chunks of the near stamp.
type ChunkReader interface {
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// Pusher implements ship.PayloadPusher: chunks of the near stamp into the far one. One
// serves all shippers of a node: its bounds hold for all of them.
type Pusher struct {
	l     *link.Link
	near  ChunkReader
	far   Far
	bufs  *extent.Buffers
	turns *turns
	calls *link.Calls
}

// NewPusher returns a Pusher of payload from near to far, over l.
func NewPusher(l *link.Link, near ChunkReader, far Far, c clock.Clock) *Pusher {
	return &Pusher{
		l: l, near: near, far: far, bufs: extent.NewBuffers(ChunkBytes, ChunksMax), turns: newTurns(c),
		calls: link.NewCalls(l, pushesOpen, pushesOpen),
	}
}

// Push implements ship.PayloadPusher. The first chunk that fails ends the push: the receiver fetches what
// is missing.
func (p *Pusher) Push(refs []extent.Ref, done func(error)) {
	p.calls.Start(func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(pushPerCall)
		k := kindOf(refs)
		for _, ref := range refs {
			g.Go(func() error {
				return p.turns.over(ctx, k, int(ref.Length), func() error { return p.push(ctx, ref) })
			})
		}
		return g.Wait()
	}, done)
}

func kindOf(refs []extent.Ref) kind {
	n := 0
	for _, ref := range refs {
		n += int(ref.Length)
	}
	if n > ship.SmallPush {
		return large
	}
	return small
}

func (p *Pusher) push(ctx context.Context, ref extent.Ref) error {
	data, err := p.bufs.Get(ctx, int(ref.Length))
	if err != nil {
		return err
	}
	defer p.bufs.Put(data)
	if _, err := p.near.ReadChunk(ref, 0, data); err != nil {
		return err
	}
	return p.l.Do(ctx, func(ctx context.Context) error { return p.far.PutChunk(ctx, ref, data) })
}
