package payload

import (
	"context"
	"slices"

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
	AskedMax    = 1024    // chunks of one question

	// askAbove is how much payload a push has, in bytes, for which it first asks what the far stamp lacks. Up to here
	// its chunks cross at once (pushPerCall), in about one round trip: the question would double how long an upload takes,
	// and so delay Last Sync Time, for the sake of copies. Above it an upload takes several round trips anyhow.
	askAbove = pushPerCall * ChunkBytes
)

// Far is the far stamp. Every call may be repeated, with the effect of one.
type Far interface {
	// ReadChunk fills p, of the chunk's length, with the chunk.
	ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error
	// PutChunk makes a chunk durable on the replicas. It does not keep data.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	// MissingChunks reports, for each of AskedMax chunks at most, whether PutChunk would have to write it. The far stamp
	// keeps the others for this round of its collection and the next (R9).
	MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error)
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
		bytes := bytesOf(refs)
		k, ask := kindOf(bytes), bytes > askAbove
		for some := range slices.Chunk(refs, AskedMax) {
			if ask {
				some, ask = p.missing(ctx, some)
			}
			for _, ref := range some {
				g.Go(func() error {
					return p.turns.over(ctx, k, int(ref.Length), func() error { return p.push(ctx, ref) })
				})
			}
		}
		return g.Wait()
	}, done)
}

// missing returns those of some chunks that the far stamp lacks, as a copy names mostly chunks that it has. The answer may
// be out of date once the record is applied, as that to PutChunk may: what was dropped meanwhile the receiver
// fetches. A question that fails, as at a location of a version without this call, leaves all to be pushed, and asked is
// false: PutChunk answers quickly what is cut or stopped. The question has some 32 bytes for each chunk, and waits for no
// turn.
func (p *Pusher) missing(ctx context.Context, some []extent.Ref) (_ []extent.Ref, asked bool) {
	missing, err := link.Ask(ctx, p.l, func(ctx context.Context) ([]bool, error) { return p.far.MissingChunks(ctx, some) })
	if err != nil || len(missing) != len(some) {
		return some, false
	}
	var out []extent.Ref
	for i, ref := range some {
		if missing[i] {
			out = append(out, ref)
		}
	}
	return out, true
}

func bytesOf(refs []extent.Ref) (n int64) {
	for _, ref := range refs {
		n += int64(ref.Length)
	}
	return n
}

func kindOf(bytes int64) kind {
	if bytes > ship.SmallPush {
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
