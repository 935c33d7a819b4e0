package payload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/stamp/extent"
)

// bubbleClock shows the time of a synctest bubble.
type bubbleClock struct {
	clock.System
	began time.Time
}

func (c bubbleClock) Mono() time.Duration { return time.Since(c.began) }

// narrowStamp takes chunks over a line of some bytes per second that all calls share: each is as far as
// every other one.
type narrowStamp struct {
	perSecond int

	mu                  sync.Mutex
	under, most, wasted int
	failed              int
}

func (e *narrowStamp) carry(ctx context.Context, bytes int) error {
	e.mu.Lock()
	e.under++
	e.most = max(e.most, e.under)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.under--
	}()
	const tick = 10 * time.Millisecond
	for sent := 0.0; sent < float64(bytes); {
		if clock.Wait(ctx, tick) != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.wasted += int(sent)
			e.failed++
			return ctx.Err()
		}
		e.mu.Lock()
		sent += float64(e.perSecond) * tick.Seconds() / float64(e.under)
		e.mu.Unlock()
	}
	return nil
}

func (e *narrowStamp) PutChunk(ctx context.Context, ref extent.Ref, _ []byte) error {
	return e.carry(ctx, int(ref.Length))
}

func (e *narrowStamp) ReadChunk(ctx context.Context, ref extent.Ref, _ []byte) error {
	return e.carry(ctx, int(ref.Length))
}

func (e *narrowStamp) MissingChunks(_ context.Context, refs []extent.Ref) ([]bool, error) {
	missing := make([]bool, len(refs))
	for i := range missing {
		missing[i] = true
	}
	return missing, nil
}

// Over a line that carries one chunk in four seconds no chunk is given up: eight at once would each take longer
// than a call may (link.CallTimeout), cross in part, and begin again for ever. What waits for its turn has no
// deadline. A wide line carries as many at once as there may be.
//
// Capability: Two locations: A narrow line between the locations.
func TestTurnsOnANarrowLine(t *testing.T) {
	for name, c := range map[string]struct{ perSecond, most int }{
		"narrow": {ChunkBytes / 4, 2},
		"wide":   {100 * ChunkBytes, ChunksMax},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := &narrowStamp{perSecond: c.perSecond}
				l := link.New()
				defer l.Close()
				at := bubbleClock{began: time.Now()}
				p, s := NewPusher(l, anyChunks{}, far, at), NewFetcher(l, far, at)
				refs := make([]extent.Ref, 10)
				for i := range refs {
					refs[i] = extent.Ref{ID: extent.ChunkID{byte(i)}, Length: ChunkBytes}
				}
				var ended atomic.Int64
				const pushes = 4
				for range pushes {
					p.Push(refs, func(err error) {
						require.NoError(t, err)
						ended.Add(1)
					})
				}
				time.Sleep(pushes * 10 * 6 * time.Second)
				synctest.Wait()
				require.EqualValues(t, pushes, ended.Load())
				require.Equal(t, c.most, far.most)
				for _, ref := range refs {
					s.Chunk(ref, func(_ []byte, err error) {
						require.NoError(t, err)
						ended.Add(1)
					})
				}
				time.Sleep(10 * 6 * time.Second)
				synctest.Wait()
				require.EqualValues(t, pushes+10, ended.Load())
				require.Zero(t, far.failed)
				require.Zero(t, far.wasted)
			})
		})
	}
}

// R15: a chunk that the other location refuses, or that this one cannot read, was answered: it narrows the line for no
// other chunk, however often it is tried. One that is not answered in time does.
func TestR15RefusedChunkNarrowsNothing(t *testing.T) {
	of := newTurns(clock.System{})
	wide := of.window.Bytes
	refused := errors.New("disk full")
	for range 3 {
		require.ErrorIs(t, of.over(t.Context(), small, 64, func() error { return refused }), refused)
		require.Equal(t, wide, of.window.Bytes)
	}
	for _, silent := range []error{context.DeadlineExceeded, link.ErrCut} {
		of.window.Bytes = wide
		require.ErrorIs(t, of.over(t.Context(), small, 64, func() error { return silent }), silent)
		require.Equal(t, 1, of.window.Bytes)
	}
	require.Zero(t, of.under)
}

// Bytes that one kind of payload sent while it waited alone, or long ago, do not count once both wait.
//
// Capability: Two locations: A narrow line between the locations.
func TestTurnsForgetFormerShares(t *testing.T) {
	for _, alone := range []kind{small, large} {
		of := newTurns(clock.System{})
		of.served = [kinds]int{small: 1 << 30, large: 7}
		of.lines[alone] = []*turn{{kind: alone, bytes: 1}}
		require.Equal(t, alone, of.next().kind)
		of.lines = [kinds][]*turn{{{kind: small}}, {{kind: large}}}
		require.Equal(t, small, of.next().kind)
	}
}

// Small payload does not wait for the large payload that came before it: it is there after what is under way, a
// second of the line at most. While both wait, each has half of the line, so that large payload goes on too.
func TestSmallPayloadGoesBesideLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 4 * ChunkBytes
		far := &narrowStamp{perSecond: perSecond}
		l := link.New()
		defer l.Close()
		p := NewPusher(l, anyChunks{}, far, bubbleClock{began: time.Now()})
		chunks := func(n int, bytes uint32) []extent.Ref {
			refs := make([]extent.Ref, n)
			for i := range refs {
				refs[i] = extent.Ref{ID: extent.ChunkID{byte(i)}, Length: bytes}
			}
			return refs
		}
		var left atomic.Int64
		for range 8 {
			left.Add(1)
			p.Push(chunks(32, ChunkBytes), func(err error) {
				require.NoError(t, err)
				left.Add(-1)
			})
		}
		for range 20 {
			time.Sleep(500 * time.Millisecond)
			began := time.Now()
			done := make(chan error, 1)
			p.Push(chunks(1, 64<<10), func(err error) { done <- err })
			require.NoError(t, <-done)
			require.Less(t, time.Since(began), 1500*time.Millisecond)
		}
		require.Positive(t, left.Load(), "large payload was under way all the time")
		began := time.Now()
		var small atomic.Int64
		for range 200 {
			small.Add(1)
			p.Push(chunks(1, ChunkBytes), func(err error) {
				require.NoError(t, err)
				small.Add(-1)
			})
		}
		for left.Load() > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		took := time.Since(began)
		require.Less(t, took, 2*8*32*ChunkBytes/perSecond*time.Second, "half of the line")
		for small.Load() > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		require.Zero(t, far.failed)
	})
}

// While both kinds wait each has half of the bytes, whatever the sizes of their chunks.
//
// Capability: Two locations: A narrow line between the locations.
func TestTurnsShareTheLine(t *testing.T) {
	of := newTurns(clock.System{})
	of.window.Bytes = 1 // One at a time.
	sizes := [kinds]int{small: 64 << 10, large: ChunkBytes}
	for k, bytes := range sizes {
		for range 200 {
			of.lines[k] = append(of.lines[k], &turn{kind: kind(k), bytes: bytes, begun: make(chan struct{})})
		}
	}
	var had [kinds]int
	for len(of.lines[small]) > 0 {
		before := of.lines
		of.under = 0
		of.serve()
		for k := range had {
			had[k] += sizes[k] * (len(before[k]) - len(of.lines[k]))
		}
		require.LessOrEqual(t, max(had[small]-had[large], had[large]-had[small]), ChunkBytes)
	}
}

// A chunk that is given up as its turn begins takes nothing of the line.
func TestTurnsGivenUp(t *testing.T) {
	of := newTurns(clock.System{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 { // Either may be seen first.
		if of.wait(ctx, small, 10) == nil {
			of.under -= 10
		}
		require.Zero(t, of.under)
	}
}

// A large chunk that is fetched waits with large payload, and a small one does not wait for it.
func TestFetchedChunksHaveTheirKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := link.New()
		defer l.Close()
		f := NewFetcher(l, &hungStamp{}, clock.System{})
		for _, length := range []uint32{ChunkBytes, ChunkBytes, ChunkBytes, 64 << 10} {
			f.Chunk(extent.Ref{Length: length}, func([]byte, error) {})
			synctest.Wait()
		}
		f.turns.mu.Lock()
		defer f.turns.mu.Unlock()
		require.Len(t, f.turns.lines[large], 1)
		require.Len(t, f.turns.lines[small], 1)
	})
}
