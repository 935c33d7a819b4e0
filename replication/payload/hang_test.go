package payload

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/stamp/extent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hungStamp answers nothing until the caller gives up, as a location that was stopped does.
type hungStamp struct {
	running, most, asked atomic.Int64
}

func (h *hungStamp) hang(ctx context.Context) error {
	h.asked.Add(1)
	if n := h.running.Add(1); n > h.most.Load() {
		h.most.Store(n)
	}
	defer h.running.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (h *hungStamp) PutChunk(ctx context.Context, _ extent.Ref, _ []byte) error { return h.hang(ctx) }

func (h *hungStamp) ReadChunk(ctx context.Context, _ extent.Ref, _ []byte) error { return h.hang(ctx) }

func (h *hungStamp) MissingChunks(context.Context, []extent.Ref) ([]bool, error) {
	return nil, errors.New("nobody answers such calls here")
}

// anyChunks has every chunk.
type anyChunks struct{}

func (anyChunks) ReadChunk(_ extent.Ref, _ int64, p []byte) (int, error) { return len(p), nil }

// A hung location holds as many chunks in memory as are sent to one that has not answered yet, and every
// push ends.
// It holds invariant 8.
func TestHungPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hungStamp{}
		l := link.New()
		defer l.Close()
		p := NewPusher(l, anyChunks{}, far, clock.System{})
		var ended, refused atomic.Int64
		refs := make([]extent.Ref, 20)
		for i := range refs {
			refs[i] = extent.Ref{ID: extent.ChunkID{byte(i)}, Length: ChunkBytes}
		}
		for range pushesOpen + 10 {
			p.Push(refs, func(err error) {
				require.Error(t, err)
				if errors.Is(err, link.ErrBusy) {
					refused.Add(1)
				}
				ended.Add(1)
			})
		}
		require.EqualValues(t, 10, refused.Load())
		time.Sleep(3 * link.CallTimeout)
		synctest.Wait()
		require.EqualValues(t, pushesOpen+10, ended.Load())
		require.EqualValues(t, 2, far.most.Load())
	})
}

// A hung location is asked for as many chunks as its line is taken to carry, so many more wait, and the others fail
// at once; all end.
func TestHungFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hungStamp{}
		l := link.New()
		defer l.Close()
		f := NewFetcher(l, far, clock.System{})
		var ended, refused atomic.Int64
		for range fetchesOpen + 10 {
			f.Chunk(extent.Ref{Length: ChunkBytes}, func(data []byte, err error) {
				require.Error(t, err)
				require.Nil(t, data)
				if errors.Is(err, link.ErrBusy) {
					refused.Add(1)
				}
				ended.Add(1)
			})
		}
		require.EqualValues(t, 10, refused.Load())
		time.Sleep(3 * link.CallTimeout)
		synctest.Wait()
		require.EqualValues(t, fetchesOpen+10, ended.Load())
		require.EqualValues(t, 2, far.most.Load())
	})
}
