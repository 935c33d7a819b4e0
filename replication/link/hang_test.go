package link

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
)

// hungEnd answers nothing until the caller gives up, as a location that was stopped does.
type hungEnd struct {
	End
	running, most, asked atomic.Int64
}

func (h *hungEnd) hang(ctx context.Context) error {
	h.asked.Add(1)
	if n := h.running.Add(1); n > h.most.Load() {
		h.most.Store(n)
	}
	defer h.running.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (h *hungEnd) Records(ctx context.Context, _ geo.Stream, _ geo.Seq, _ int) ([][]byte, error) {
	return nil, h.hang(ctx)
}

func (h *hungEnd) PutChunk(ctx context.Context, _ extent.Ref, _ []byte) error { return h.hang(ctx) }

// While the other location hangs, so many calls run and so many wait; the others fail at
// once, and each of the rest within twice CallTimeout.
func TestHungPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hungEnd{}
		l := New()
		defer l.Close()
		s := NewSource(l, far, clock.System{})
		var atOnce, later atomic.Int64
		for range callsOpen + 100 {
			s.Records(testStream("acct", 1), 1, 10, func(_ [][]byte, err error) {
				if errors.Is(err, ErrBusy) && later.Load() == 0 {
					atOnce.Add(1)
				} else {
					require.Error(t, err)
					later.Add(1)
				}
			})
		}
		require.EqualValues(t, 100, atOnce.Load())
		time.Sleep(2*CallTimeout + time.Second)
		synctest.Wait()
		require.EqualValues(t, callsOpen+100, atOnce.Load()+later.Load())
		require.Zero(t, far.running.Load())
		require.EqualValues(t, bulkRunning, far.most.Load())
	})
}

// anyChunks has every chunk.
type anyChunks struct{}

func (anyChunks) ReadChunk(_ extent.Ref, _ int64, p []byte) (int, error) { return len(p), nil }

// A hung location holds as many chunks in memory as are sent to one that has not answered yet, and every
// push ends.
func TestHungPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hungEnd{}
		l := New()
		defer l.Close()
		p := NewPusher(l, anyChunks{}, far, clock.System{})
		var ended, refused atomic.Int64
		refs := make([]extent.Ref, 20)
		for i := range refs {
			refs[i] = extent.Ref{ID: extent.ChunkID{byte(i)}, Length: pushBytes}
		}
		for range pushesOpen + 10 {
			p.Push(refs, func(err error) {
				require.Error(t, err)
				if errors.Is(err, ErrBusy) {
					refused.Add(1)
				}
				ended.Add(1)
			})
		}
		require.EqualValues(t, 10, refused.Load())
		time.Sleep(3 * CallTimeout)
		synctest.Wait()
		require.EqualValues(t, pushesOpen+10, ended.Load())
		require.EqualValues(t, 2, far.most.Load())
	})
}

// A cut ends the calls in flight, and Close ends them and all that wait.
func TestCutAndCloseEndCalls(t *testing.T) {
	for name, end := range map[string]func(*Link){"cut": (*Link).Cut, "close": (*Link).Close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := &hungEnd{}
				l := New()
				defer l.Close()
				s := NewSource(l, far, clock.System{})
				var ended atomic.Int64
				for range 3 * bulkRunning {
					s.Records(testStream("acct", 1), 1, 10, func(_ [][]byte, err error) {
						require.ErrorIs(t, err, ErrCut)
						ended.Add(1)
					})
				}
				synctest.Wait()
				require.EqualValues(t, bulkRunning, far.running.Load())
				start := time.Now()
				end(l)
				synctest.Wait()
				require.EqualValues(t, 3*bulkRunning, ended.Load())
				require.Equal(t, start, time.Now())
				require.EqualValues(t, bulkRunning, far.asked.Load(), "nothing got through after it")
			})
		})
	}
}

// A link that is cut while a call runs loses the answer; one that was healed in between
// does not bring it back, and new calls pass.
func TestCutLosesAnswer(t *testing.T) {
	l := New()
	defer l.Close()
	err := l.Do(t.Context(), func(ctx context.Context) error {
		l.Cut()
		<-ctx.Done()
		l.Heal()
		return nil
	})
	require.ErrorIs(t, err, ErrCut)
	require.NoError(t, l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
}

// A delay counts for each call, not against its deadline.
func TestDelayedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		defer l.Close()
		l.Delay(3 * CallTimeout)
		start := time.Now()
		require.NoError(t, l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
		require.Equal(t, 3*CallTimeout, time.Since(start))
	})
}
