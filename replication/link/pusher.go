package link

import (
	"context"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
	"antipode/replication/ship"
	"antipode/stamp/extent"
)

// Bounds of a Pusher.
const (
	pushBytes   = 1 << 20 // of one chunk; a longer one counts as many
	pushChunks  = 8       // chunks at once, of all pushes
	pushPerCall = 4       // chunks at once, of one push
	pushesOpen  = 256     // pushes at once; their chunks wait for their turns
)

// ChunkReader reads chunks of the near stamp.
type ChunkReader interface {
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// Pusher implements ship.PayloadPusher: chunks of the near stamp into the far one. One
// serves all shippers of a node: its bounds hold for all of them.
type Pusher struct {
	near  ChunkReader
	far   End
	bufs  *extent.Buffers
	turns *turns
	calls *calls
}

// NewPusher returns a Pusher of payload from near to far, over l.
func NewPusher(l *Link, near ChunkReader, far End, c clock.Clock) *Pusher {
	return &Pusher{
		near: near, far: l.End(far), bufs: extent.NewBuffers(pushBytes, pushChunks), turns: newTurns(c),
		calls: newCalls(l, pushesOpen, pushesOpen),
	}
}

// Push implements ship.PayloadPusher. The first chunk that fails ends the push: the receiver fetches what
// is missing.
func (p *Pusher) Push(refs []extent.Ref, done func(error)) {
	p.calls.start(func(ctx context.Context) error {
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
	return p.far.PutChunk(ctx, ref, data)
}
